"""The request of `headscope align`."""

from collections.abc import Iterable
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from headscope.commands.function import make_function
from headscope.commands.model_options import ModelOptions
from headscope.commands.option import CORPUS, MEASURED, MODEL, argument, option, output_folder
from headscope.commands.option_groups import PERMUTATIONS, CorpusPart, TextForm
from headscope.commands.output import Contents, Listing, Resumable, check_folder
from headscope.commands.progress import Progress
from headscope.commands.record import HeadTable, Request
from headscope.errors import CorpusError

if TYPE_CHECKING:
    from headscope.corpora import Corpus

FORMAT = "alignments"
"""The default format of a file of sentence pairs."""

SETTINGS = "generation_config.json"
"""The file in which transformers stores the settings for generation."""


class Align(ModelOptions, CorpusPart, TextForm, Listing, Resumable, Request[HeadTable], command="align"):
    """Find the heads of an encoder-decoder that are the word alignment: where a word is translated, they look at it.

    Heads are chosen on one half of the pairs and scored on the other, and compared with rules that know the places of
    words alone and with the same model untrained. The folder holds heads.nc, a head table; untrained.nc; alignment.csv,
    with a row for each head and step; and generation_config.json, with the heads that stand out as alignment_heads, as
    Whisper has them, and the settings of the model.

    Returns:
        The head table that is in ``heads.nc``; `headscope.analyse.shortlist_heads` says what its verdicts are.
    """

    contents = Contents("the alignment", "alignment.json", ("heads", "untrained"), (SETTINGS, "alignment.csv"))
    usage = (
        "headscope align ./my-translator pairs.txt -o aligned",
        "headscope align facebook/nllb-200-distilled-600M pairs.txt --source eng_Latn --target fra_Latn --step reading",
    )
    example = (
        'table = headscope.align("my-translator", "pairs.txt", permutations=99)',
        'table["alignment_accuracy"].max(["layer", "head"])',
    )
    pairs: str | Path | Iterable[Any] = argument(
        "PAIRS",
        "Word-aligned pairs, such as pairs.txt: one a line, as 'source words ||| target words ||| 0-0 1-2 3p4', sure "
        "links with - and possible ones with p, counted from 0; or a folder of them.",
        kw_only=False,
        typed=Path,
        python="Or documents with a ``translation`` and its ``alignment``.",
    )
    format: str | None = option(
        CORPUS,
        "Format of the pairs, such as alignments-from-1 or alignments-swapped (`headscope list corpora`).",
        default=None,
        unset="alignments",
        metavar="NAME",
    )
    out: str | Path | None = output_folder("aligned", "headscope-alignment", default=None, kw_only=False)
    seed: int = option(CORPUS, "Random seed of `sample` and of the untrained model, such as 7.", default=0)
    source: str | None = option(
        MODEL,
        "Language of the source words, for a tokenizer of several languages, such as eng_Latn.",
        default=None,
        unset="that of the tokenizer",
        metavar="LANGUAGE",
    )
    target: str | None = option(
        MODEL,
        "Language of the target words, such as fra_Latn.",
        default=None,
        unset="that of the tokenizer",
        metavar="LANGUAGE",
    )
    step: Literal["predicting", "reading"] = option(
        MEASURED,
        "Step of the decoder whose heads generation_config.json gets, such as reading: that which predicts a word, or "
        "that which reads it. Both are measured.",
        default="predicting",
        metavar="STEP",
        basic=True,
    )
    top: int | None = option(
        MEASURED,
        "Number of heads to write to generation_config.json, such as 4, the best first.",
        default=None,
        unset="all that stand out",
        at_least=1,
        basic=True,
    )
    permutations: int | None = option(
        MEASURED,
        PERMUTATIONS,
        default=None,
        unset="999",
        at_least=0,
    )

    @cached_property
    def documents(self) -> "Corpus":
        """The sentence pairs, which are all read at once, so that errors come before a model is loaded.

        Raises:
            CorpusError: The file is missing, a line is malformed, or no word has a sure link to its translation.
        """
        from headscope.corpora import read, summarize

        unset = FORMAT if isinstance(self.pairs, str | Path) else None
        corpus = read(self.pairs, format=self.format or unset, **self.selection)
        if not summarize(corpus).aligned:
            raise CorpusError(
                f"{corpus.name} has no sure link between a word and one of its translation, so there is nothing to "
                "score heads on; write links such as 0-0 after each pair."
            )
        return corpus

    def check(self, progress: Progress) -> None:
        """Raise an error for a path without a model, an unusable folder, or pairs without links."""
        self.check_model()
        check_folder(self)
        _ = self.documents


align = make_function(Align)
