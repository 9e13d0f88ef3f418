"""The request of `headscope probe`."""

from collections.abc import Iterable, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from headscope.commands.function import make_function
from headscope.commands.model_options import ModelOptions
from headscope.commands.option import CORPUS, MEASURED, argument, option, output_folder
from headscope.commands.option_groups import CorpusFormat, CorpusSize, ShortTexts
from headscope.commands.output import Contents, Drawing, Listing, Resumable, check_folder
from headscope.commands.progress import Progress
from headscope.commands.record import HeadTable, Request
from headscope.errors import HeadscopeError
from headscope.learn.link_kinds import DEPENDENCY, LinkKind

if TYPE_CHECKING:
    from headscope.corpora import Corpus

Part: TypeAlias = Literal["untrained", "control", "code-length", "structural"]
STRUCTURAL: Part = "structural"
"""The name of the structural probe, which reads hidden states."""


class Probe(
    ModelOptions, CorpusFormat, CorpusSize, ShortTexts, Drawing, Listing, Resumable, Request[HeadTable], command="probe"
):
    """Train probes that find the links between words from the attention of all heads.

    The folder holds probe.csv, with a row for each probe and relation; lengths.csv, by the length of links; and
    probe.nc, a head table with the weight of each head. Each accuracy is shown with its interval, what
    right-branching and a probe of words alone reach, and what a control task reaches.

    Returns:
        The head table that is in ``probe.nc``, with the dimension ``probe`` (`headscope.learn.probe.PROBES`): see
        `headscope.analyse.probes.add_probe_scores`, and ``probe_weight`` of each head.
    """

    contents = Contents("the probes", "probe.json", ("probe",), ("probe.csv", "lengths.csv"))
    usage = (
        "headscope probe minilm grammar:300 -o probe",
        "headscope probe minilm en_ewt-ud-train.conllu --test en_ewt-ud-dev.conllu --words glove.6B.100d.txt.gz "
        "-o probe",
    )
    example = ('table = headscope.probe("minilm", "grammar:60", seeds=1)', 'table["probe_accuracy"]')
    treebank: str | Path | Iterable[Any] = argument(
        "TREEBANK",
        "File or folder with links, such as en_ewt-ud-train.conllu (`headscope list corpora`), or grammar:COUNT for "
        "generated sentences.",
        kw_only=False,
        typed=str,
        python="Or documents in memory (`headscope.read`).",
    )
    out: str | Path | None = output_folder("probe", "headscope-probe", default=None, kw_only=False)
    test: str | Path | Iterable[Any] | None = option(
        CORPUS,
        "Texts on which the probes are tested, such as en_ewt-ud-dev.conllu.",
        default=None,
        unset="for each seed another fifth of the texts of `treebank`, so that five seeds test on all of them",
        metavar="CORPUS",
        typed=str,
        basic=True,
    )
    links: LinkKind | None = option(
        MEASURED,
        "Kind of links that the probes find, such as role. There are dependency, role, coreference, scope (from a word "
        "to the cue of its negation) and pattern.",
        default=None,
        unset="the first of these that `treebank` has",
        metavar="KIND",
    )
    words: str | Path | None = option(
        MEASURED,
        "File of word vectors, such as glove.6B.100d.txt, plain or .gz.",
        default=None,
        unset="the model's own input embeddings, in 100 principal components",
        metavar="FILE",
    )
    seeds: int = option(
        MEASURED,
        "How many times probes are trained, such as 5.",
        default=3,
        at_least=1,
        python="Each time with another split and order of the texts, another untrained model and another control task.",
        basic=True,
    )
    decode: Literal["word", "tree"] = option(
        MEASURED,
        "How it decides, such as tree: the best candidate for each word (word), or the best tree of each sentence "
        "(tree).",
        default="word",
        metavar="WAY",
    )
    without: Sequence[Part] = option(
        MEASURED,
        "Leave out a part that takes time, such as control: untrained (the untrained model), control (the control "
        "task), code-length, or structural (the structural probe); may be repeated.",
        default=(),
        metavar="PART",
        python="The untrained model keeps the trained embeddings; in the control task each word type attaches to "
        "itself, the first or the last word; the online code length is measured with the first seed, and so is the "
        "structural probe of Hewitt and Manning on the hidden states of each layer, of ``dependency`` only.",
    )
    rank: int = option(MEASURED, "Rank of the structural probe, such as 32.", default=64, at_least=1)

    @cached_property
    def documents(self) -> "Corpus":
        """The treebank; its documents are read only when they are used.

        Raises:
            CorpusError: The file, folder or part does not exist.
        """
        from headscope.corpora import read

        return read(self.treebank, format=self.format, limit=self.limit, sample=self.sample)

    @cached_property
    def tested(self) -> "Corpus | None":
        """The texts for testing; None if the test texts are a part of the treebank.

        Raises:
            CorpusError: The file or folder does not exist.
        """
        from headscope.corpora import read

        return None if self.test is None else read(self.test, format=self.format)

    def check_tree(self, kind: str | None) -> None:
        """Raise an error if a tree is to be decoded from links that form no tree; the kind None is not checked."""
        if self.decode == "tree" and kind not in (None, DEPENDENCY):
            raise HeadscopeError(
                f"links of the kind {kind} form no tree; leave out `decode`, or choose {DEPENDENCY} links."
            )

    def check(self, progress: Progress) -> None:
        """Raise an error for links that form no tree, or for a model, a folder or a corpus that cannot be used."""
        self.check_tree(self.links)
        self.check_model()
        check_folder(self)
        _ = self.documents, self.tested


probe = make_function(Probe)
