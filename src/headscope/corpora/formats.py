"""The formats in which a corpus may be written down, and how a file shows which one it is in."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from headscope.corpora import (
    conll2012,
    conllu,
    framenet,
    frames,
    linktable,
    ontogum,
    propbank,
    records,
    semeval,
    sfu,
    starsem,
    text,
)
from headscope.corpora.document import Document, Skipped


@dataclass(frozen=True)
class Format:
    """One way to write a corpus down.

    Attributes:
        name: what the user calls it.
        description: what it looks like, in one line.
        read: turns a file into documents; takes the path, and as `name` what ids call the file.
        suffixes: what the names of such files end in.
        recognise: whether the first lines of a file look like it.
        annotated: whether it holds more than words. Such a format is told from the suffix or from the
            content; plain text, which anything might be, only from both.
        beside: the other files that are read with a file.
    """

    name: str
    description: str
    read: Callable[..., Iterator[Document | Skipped]]
    suffixes: tuple[str, ...]
    recognise: Callable[[Sequence[str]], bool]
    annotated: bool
    beside: Callable[[Path], tuple[Path, ...]] = lambda path: ()

    def supports(self, suffix: str, beginning: Sequence[str]) -> bool:
        """Whether a file whose name ends in `suffix` and that begins with these lines is in this format."""
        named, recognised = suffix in self.suffixes, self.recognise(beginning)
        return (named or recognised) if self.annotated else (named and recognised)


# In the order in which a file is asked for its format: a treebank with more columns is one without by its name, and
# the last takes any text.
FORMATS: dict[str, Format] = {
    "propbank": Format(
        name="propbank",
        description="PropBank roles in CoNLL-U, as in Universal Propositions: a roleset in column 11, then a column "
        "for each predicate",
        read=propbank.read,
        suffixes=(),
        recognise=propbank.recognise,
        annotated=True,
    ),
    "conllu": Format(
        name="conllu",
        description="CoNLL-U treebank, as in Universal Dependencies: one word a line, 10 columns separated by tabs",
        read=conllu.read,
        suffixes=(".conllu",),
        recognise=conllu.recognise,
        annotated=True,
    ),
    "conll2012": Format(
        name="conll2012",
        description="coreference as in CoNLL-2012 (OntoNotes, LitBank): '#begin document (NAME); part 000', one word a "
        "line, chains in the last column",
        read=conll2012.read,
        suffixes=(".v4_gold_conll", ".v4_auto_conll", ".v9_gold_conll", ".v9_auto_conll"),
        recognise=conll2012.recognise,
        annotated=True,
    ),
    "ontogum": Format(
        name="ontogum",
        description="OntoGUM coreference: '# begin document', number, word and brackets; with the trees in ../conllu "
        "if they are there",
        read=ontogum.read,
        suffixes=(),
        recognise=ontogum.recognise,
        annotated=True,
        beside=ontogum.trees,
    ),
    "starsem": Format(
        name="starsem",
        description="*SEM 2012 negation columns (CD-SCO): one word a line, three columns for each negation, separated "
        "by tabs",
        read=starsem.read,
        suffixes=(),
        recognise=starsem.recognise,
        annotated=True,
    ),
    "frames": Format(
        name="frames",
        description="negation frames of Zhao and Bethard 2020: a JSON list of sentences with cue, scope and event",
        read=frames.read,
        suffixes=(),
        recognise=frames.recognise,
        annotated=True,
    ),
    "framenet": Format(
        name="framenet",
        description="FrameNet 1.7, the folder of the release with frameIndex.xml: frame elements as roles (extra "
        "`framenet`)",
        read=framenet.read,
        suffixes=(),
        recognise=framenet.recognise,
        annotated=True,
        beside=framenet.parts,
    ),
    "sfu": Format(
        name="sfu",
        description="SFU Review Corpus in XML, with negation cues and their scopes",
        read=sfu.read,
        suffixes=(),
        recognise=sfu.recognise,
        annotated=True,
    ),
    "records": Format(
        name="records",
        description='JSON Lines of your own: one text a line, with "words" and perhaps "links" and "spans"',
        read=records.read,
        suffixes=(".jsonl",),
        recognise=records.recognise,
        annotated=True,
    ),
    "linktable": Format(
        name="linktable",
        description="table of your own links: columns text, source, target, label, parted by tabs",
        read=linktable.read,
        suffixes=(),
        recognise=linktable.recognise,
        annotated=True,
    ),
    "semeval": Format(
        name="semeval",
        description="SemEval-2014 restaurants, XML: each sentence asked about five aspect categories, as pairs",
        read=semeval.read,
        suffixes=(),
        recognise=semeval.recognise,
        annotated=True,
    ),
    "wikitext": Format(
        name="wikitext",
        description="WikiText: one paragraph a line, under headings like ' = Title = '",
        read=text.read_wikitext,
        suffixes=(".txt", ".tokens", ".raw"),
        recognise=text.recognise_wikitext,
        annotated=False,
    ),
    "text-wrapped": Format(
        name="text-wrapped",
        description="plain text in short lines, with an empty line between paragraphs",
        read=text.read_text_wrapped,
        suffixes=(".txt", ".tokens"),
        recognise=text.recognise_text_wrapped,
        annotated=False,
    ),
    "text-lines": Format(
        name="text-lines",
        description="plain text, one paragraph a line; an empty line parts paragraphs that do not belong together",
        read=text.read_text_lines,
        suffixes=(".txt", ".tokens"),
        recognise=text.recognise_text,
        annotated=False,
    ),
}
