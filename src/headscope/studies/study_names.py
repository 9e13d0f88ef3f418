"""The names of the studies. This module loads no study, so commands can list and check names quickly."""

from collections.abc import Mapping

from headscope.errors import HeadscopeError, suggest

NAMES: Mapping[str, str] = {
    "clark2019": "Clark, Khandelwal, Levy and Manning 2019, What Does BERT Look At? An Analysis of BERT's Attention",
    "zhao2020": "Zhao and Bethard 2020, How does BERT's attention change when you fine-tune?",
    "kovaleva2019": "Kovaleva, Romanov, Rogers and Rumshisky 2019, Revealing the Dark Secrets of BERT",
    "aspects2019": "What does a fine-tuned BERT model look at? (essay, 2019), measured head by head",
    "sashida2026": "Sashida, Kojima, Iwasawa and Matsuo 2026, Revealing Redundant Syntax in Large Language Models "
    "through Multi-Hop Dependency Paths",
}
"""The title of each study of `headscope.studies.STUDIES`."""


def check_name(name: str) -> None:
    """Raise an error for an unknown study.

    Raises:
        HeadscopeError: the name is not in `NAMES`.
    """
    if name not in NAMES:
        raise HeadscopeError(f"there is no study {name!r}{suggest(name, NAMES)}; there are {', '.join(NAMES)}.")
