"""Annotated files, plain text and generated sentences as `Document` records. No torch here.

=============  ==============================================================================
`read`         a file, a folder or ``grammar`` -> `Corpus`, which yields documents anew each time
`survey`       documents -> `Survey`: check them all and count words, groups, links and spans
`Document`     words, and what is annotated on them: `Span`, `Link`, a label, a boundary
`FORMATS`      the formats that `read` knows, each a `Format`
=============  ==============================================================================

One file knows one format: `conllu` treebanks, `text` for paragraphs, `grammar` for what is generated.
"""

from headscope.corpora.corpus import FORMATS, Corpus, Format, Survey, read, survey
from headscope.corpora.document import Document, Link, Span

__all__ = ["FORMATS", "Corpus", "Document", "Format", "Link", "Span", "Survey", "read", "survey"]
