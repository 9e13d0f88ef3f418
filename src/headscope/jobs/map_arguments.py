"""Arguments about labelled maps, checked before torch is loaded."""

from collections.abc import Sequence
from pathlib import Path

from headscope.errors import HeadscopeError

MAPS = "maps.csv"
"""The file by which one knows a folder of maps to label."""


def check_patterns(labels: Sequence[str | Path], classifier: str | Path | None) -> None:
    """Refuse folders without maps, a classifier that is not there, and both at once.

    Raises:
        HeadscopeError: one of these.
    """
    if labels and classifier is not None:
        raise HeadscopeError("labels train a classifier, and another was given as well; leave out one of the two.")
    for folder in labels:
        if not (Path(folder).expanduser() / MAPS).is_file():
            raise HeadscopeError(f"{folder} is no folder of labelled maps; make one with --annotate FOLDER.")
    if classifier is not None and not Path(classifier).expanduser().is_file():
        raise HeadscopeError(f"there is no file {classifier}; give the classifier.safetensors that --labels wrote.")


def check_labelling(maps: int, second: int) -> None:
    """Refuse numbers of maps with which nothing can be labelled.

    Raises:
        HeadscopeError: there would be no map, or fewer than none a second time.
    """
    if maps < 1:
        raise HeadscopeError(f"{maps} maps were asked for; ask for 1 or more, such as 144.")
    if second < 0:
        raise HeadscopeError(f"{second} maps were to be labelled a second time; give 0 or more, such as 100.")
