"""Annotated files, plain text and generated sentences as `Document` records. No torch here.

====================  ==============================================================================
`read`                a file, a folder or ``grammar`` -> `Corpus`, which yields documents anew each time
`summarize`           documents -> `CorpusSummary`: check them all and count words, groups, links and spans
`Document`            words with their annotation: `Span`, `Link`, a label, a boundary
`Message`             a message of a conversation: a role and a content
`WrittenText`         a text as its author wrote it, with the characters of each of its words
`FORMATS`             the formats that `read` knows, each a `Format`
`Shard`               one of several parts of a corpus with about equal numbers of tokens
`read_minimal_pairs`  a file or folder of BLiMP -> each `MinimalPair`, two sentences that are compared
====================  ==============================================================================

Each format has a module: `conllu` and `head_labels` for trees, `propbank` for trees with roles, `framenet`;
`conll2012`, `ontogum`, `corefud`, `e2e_coref` and `gap` for coreference; `starsem`, `negation_frames`, `sfu` and
`bioscope` for negation; `semeval`, `semeval_terms` and `semeval2016` for aspects; `blimp` for minimal pairs; `records`
and `linktable` for your own annotation; `text` for paragraphs, `grammar` for generated sentences. `spacy_patterns` adds
links to the documents of any format.
"""

from headscope.corpora.blimp import MinimalPair
from headscope.corpora.corpus import Corpus, read
from headscope.corpora.document import Document, Link, Skipped, Span
from headscope.corpora.formats import FORMATS, Format
from headscope.corpora.message import Message
from headscope.corpora.minimalpairs import read_minimal_pairs
from headscope.corpora.shard import Shard
from headscope.corpora.summary import CorpusSummary, summarize
from headscope.corpora.written_text import WrittenText

__all__ = [
    "FORMATS",
    "Corpus",
    "CorpusSummary",
    "Document",
    "Format",
    "Link",
    "Message",
    "MinimalPair",
    "Shard",
    "Skipped",
    "Span",
    "WrittenText",
    "read",
    "read_minimal_pairs",
    "summarize",
]
