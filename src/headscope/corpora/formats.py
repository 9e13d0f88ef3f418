"""The formats of corpora, and how the format of a file is recognised."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from headscope.corpora import (
    alignments,
    bioscope,
    blimp,
    conll2012,
    conllu,
    corefud,
    e2e_coref,
    framenet,
    gap,
    head_labels,
    linktable,
    negation_frames,
    ontogum,
    propbank,
    records,
    semeval,
    semeval2016,
    semeval_terms,
    sfu,
    starsem,
    text,
)
from headscope.corpora.document import Document, Skipped


@dataclass(frozen=True)
class Format:
    """One format of corpora.

    Attributes:
        name: the name by which the user chooses it.
        description: a description in one line.
        read: a function that yields the documents of the file at a path. Its argument `name` is the name of the file in
            ids and groups: by default the file name.
        recognise: a function that returns whether the first lines of a file are in this format.
        suffixes: the suffixes of such files.
        annotated: true if the files hold more than words. Such a format is recognised by the suffix or by the content;
            plain text, which any file might be, only by both.
        companions: a function that returns the other files that are read together with a file.
    """

    name: str
    description: str
    read: Callable[..., Iterator[Document | Skipped]]
    recognise: Callable[[Sequence[str]], bool]
    suffixes: tuple[str, ...] = ()
    annotated: bool = True
    companions: Callable[[Path], tuple[Path, ...]] = lambda path: ()

    def supports(self, suffix: str, beginning: Sequence[str]) -> bool:
        """Return whether a file with this suffix that begins with these lines is in this format."""
        has_suffix, has_content = suffix in self.suffixes, self.recognise(beginning)
        return (has_suffix or has_content) if self.annotated else (has_suffix and has_content)


# The order matters: a treebank with more columns also looks like one without, minimal pairs also look like records,
# and the last format accepts any text.
_FORMATS = (
    Format("propbank", "PropBank roles in CoNLL-U, as in Universal Propositions: a roleset in column 11, then a "
           "column for each predicate", propbank.read, propbank.recognise),
    Format("conllu", "CoNLL-U treebank, as in Universal Dependencies: one word a line, 10 columns separated by tabs, "
           "or those that '# global.columns' names (CoNLL-U Plus, PARSEME)",
           conllu.read, conllu.recognise, suffixes=(".conllu", ".conllup", ".cupt")),
    Format("corefud", "coreference of whole texts in a treebank, as in CorefUD and UD GUM: 'Entity=' in column MISC; "
           "never detected, since the file is a treebank too",
           corefud.read, corefud.recognise, suffixes=(".conllu",)),
    Format("head-labels", "dependencies as in attention-analysis (Clark et al. 2019): one word a line with its head "
           "and relation, as in 'dog 3-nsubj', and an empty line between sentences",
           head_labels.read, head_labels.recognise),
    Format("conll2012", "coreference as in CoNLL-2012 (OntoNotes, LitBank): '#begin document (NAME); part 000', one "
           "word a line, chains in the last column",
           conll2012.read, conll2012.recognise,
           suffixes=(".v4_gold_conll", ".v4_auto_conll", ".v9_gold_conll", ".v9_auto_conll")),
    Format("ontogum", "OntoGUM coreference: '# begin document', number, word and brackets; with the trees in "
           "../conllu if they are there", ontogum.read, ontogum.recognise, companions=ontogum.find_trees),
    Format("e2e-coref", 'coreference as in e2e-coref, JSON Lines: a document a line, with "sentences" of words and '
           '"clusters" of mentions', e2e_coref.read, e2e_coref.recognise),
    Format("gap", "GAP, a table of ambiguous pronouns: a text a row, with two names and which of them is meant",
           gap.read, gap.recognise),
    Format("starsem", "*SEM 2012 negation columns (CD-SCO): one word a line, three columns for each negation, "
           "separated by tabs", starsem.read, starsem.recognise),
    Format("frames", "negation frames of Zhao and Bethard 2020: a JSON list of sentences with cue, scope and event",
           negation_frames.read, negation_frames.recognise),
    Format("framenet", "FrameNet 1.7, the folder of the release with frameIndex.xml: frame elements as roles (extra "
           "`framenet`)", framenet.read, framenet.recognise, companions=framenet.find_companions),
    Format("sfu", "SFU Review Corpus in XML, with negation cues and their scopes",
           sfu.read, sfu.recognise),
    Format("bioscope", "BioScope in XML: sentences of text with the cues and scopes of negations",
           bioscope.read, bioscope.recognise),
    Format("blimp", "minimal pairs as in BLiMP, JSON Lines: a grammatical and an ungrammatical sentence a line",
           blimp.read, blimp.recognise),
    Format("records", 'JSON Lines of your own: a text a line, with "words", "text" or "messages", and perhaps "links" '
           'and "spans"',
           records.read, records.recognise, suffixes=(".jsonl",)),
    Format("linktable", "table of your own links: columns text, source, target, label, separated by tabs",
           linktable.read, linktable.recognise),
    Format("alignments", "word-aligned pairs, one a line: 'source words ||| target words ||| 0-0 1-2 3p4', sure links "
           "with - and possible ones with p, counted from 0", alignments.read, alignments.recognise),
    *(Format(name, f"the same with links {text}; never detected, since nothing of a file says so",
             partial(alignments.read, form=alignments.FORMS[name]), alignments.recognise)
      for name, text in (
          ("alignments-from-1", "counted from 1"), ("alignments-swapped", "that have the target word first"),
          ("alignments-from-1-swapped", "counted from 1 that have the target word first"))),
    Format("semeval-terms", "SemEval-2014 laptops, XML: each sentence asked about its aspect terms, as pairs; the "
           "restaurants by their terms", semeval_terms.read, semeval_terms.recognise),
    Format("semeval2016", "SemEval-2016 and 2015, XML: each sentence asked about the categories of its file, as pairs",
           semeval2016.read, semeval2016.recognise),
    Format("semeval", "SemEval-2014 restaurants, XML: each sentence asked about five aspect categories, as pairs",
           semeval.read, semeval.recognise),
    Format("wikitext", "WikiText: one paragraph a line, under headings like ' = Title = '",
           text.read_wikitext, text.recognise_wikitext, suffixes=(".txt", ".tokens", ".raw"), annotated=False),
    Format("text-wrapped", "plain text in short lines, with an empty line between paragraphs",
           text.read_text_wrapped, text.recognise_text_wrapped, suffixes=(".txt", ".tokens"), annotated=False),
    Format("text-lines", "plain text, one paragraph a line; an empty line parts paragraphs that do not belong together",
           text.read_text_lines, text.recognise_text_lines, suffixes=(".txt", ".tokens"), annotated=False),
    Format("sentences", "plain text, one sentence a line, each by itself; empty lines, if there are any, part texts",
           text.read_sentences, text.recognise_text, suffixes=(".txt", ".tokens"), annotated=False),
)  # fmt: skip

FORMATS: dict[str, Format] = {format.name: format for format in _FORMATS}
