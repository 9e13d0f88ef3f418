"""Corpora that are damaged, or whose annotation is altered.

A sample is a whole file of a format. What it annotates stands in «», which are no part of it: wherever a character of
that is altered, the file is refused or read as something else.
"""

import random
import re
from pathlib import Path

from headscope.corpora import read, summarize
from headscope.corpora.document import Document, Skipped
from headscope.errors import HeadscopeError
from mutations import check_sentence, damage, within
from mutations.bytes import mutate

_PROPBANK = (
    "# sent_id = s\n"
    "1\tAnn\t_\t«PROPN»\t_\t_\t«2»\t«nsubj»\t_\t_\t«_»\t«A0»\t«A1»\n"
    "2\tsaw\t_\t«VERB»\t_\t_\t«0»\troot\t_\t_\t«see.01»\t«V»\t«_»\n"
    "3\tleaving\t_\t«VERB»\t_\t_\t«2»\t«xcomp»\t_\t_\t«leave.02»\t«A1»\t«V»\n\n"
)
_PARAGRAPHS = [" ".join(f"«{word}{number}»" for number in range(10, 33)) for word in ("red", "blue", "green")]

SAMPLES = {
    "propbank": ("trees.conllup", _PROPBANK),
    "conllu": (
        "trees.conllu",
        "# newdoc id = «n»\n# sent_id = «s1»\n# text = «cannot»\n1-2\t«cannot»\t_\t_\t_\t_\t_\t_\t_\t_\n"
        "1\tcan\t_\t«AUX»\t_\t_\t«0»\troot\t_\t_\n2\tnot\t_\t«PART»\t_\t«Polarity=Neg»\t«1»\t«advmod»\t_\t_\n\n"
        "1\tNo\t_\t«DET»\t_\t«PronType=Neg»|A=B\t«2»\t«det:neg»\t_\t_\n2\tdog\t_\t«NOUN»\t_\t_\t«3»\t«nsubj»\t_\t_\n"
        "3\tcame\t_\t«VERB»\t_\t_\t«0»\troot\t_\t«SpaceAfter=No»\n4\t!\t_\t_\t_\t_\t«3»\t«punct»\t_\t_\n\n",
    ),
    "corefud": (
        "texts.conllu",
        "# newdoc id = «n»\n# global.Entity = etype-eid\n"
        "1\tAnn\t_\t«PROPN»\t_\t_\t«2»\t«nsubj»\t_\tEntity=(person-e«1»)\n"
        "2\tsaw\t_\t«VERB»\t_\t_\t«0»\troot\t_\t_\n\n# newdoc id = «m»\n"
        "1\ther\t_\t«PRON»\t_\t_\t«2»\t«det»\t_\tEntity=(animal-e«2»(person-e«1»)\n"
        "2\tdog\t_\t«NOUN»\t_\t_\t«0»\troot\t_\tEntity=e«2»)\n\n",
    ),
    "head-labels": ("dev.txt", "«the» «2»-«det»\n«dog» «3»-«nsubj»\n«saw» «0»-root\n\n«yes» 0-root\n"),
    "conll2012": (
        "text.v4_gold_conll",
        "#begin document («d»); part «000»\nd\t0\t0\tAnn\t«(1)»\nd\t0\t1\tsaw\t_\nd\t0\t2\tthe\t«(12|(3»\n"
        "d\t0\t3\tdog\t«12)»\n\nd\t0\t0\tnow\t«3)»\n#end document\n",
    ),
    "ontogum": (
        "text.conll",
        "# begin document t\n0\tAnn\t«(1)»\n1\tsaw\t_\n2\ther\t«(1)(2»\n3\tdog\t«2)»\n# end document\n",
    ),
    "e2e-coref": (
        "train.jsonlines",
        '{"doc_key": "«d»", "sentences": [["«Ann»", "«left»"], ["«She»", "«ran»"]], "speakers": [], "clusters": '
        "[[[«0», «0»], [«2», «2»]], [[«0», «1»]]]}\n",
    ),
    "gap": (
        "gap.tsv",
        "ID\tText\tPronoun\tPronoun-offset\tA\tA-offset\tA-coref\tB\tB-offset\tB-coref\tURL\n"
        "«d»\t«Ann» saw «Bea»; «she» left\t«she»\t«13»\t«Ann»\t«0»\t«TRUE»\t«Bea»\t«8»\t«FALSE»\t«page»\n",
    ),
    "starsem": (
        "story.txt",
        "«t»\t«0»\t0\tI\tI\tPRP\t*\t«_»\t_\t_\n«t»\t«0»\t1\tam\tbe\tVB\t*\t«_»\tam\t«_»\n"
        "«t»\t«0»\t2\tunhappy\tunhappy\tJJ\t*\t«un»\thappy\t«_»\n\n«t»\t«1»\t0\tYes\tyes\tUH\t*\t***\n\n",
    ),
    "frames": (
        "story.json",
        '[{"sent": {"c_1_0": "I", "c_1_1": "did", "c_1_2": "not", "c_1_3": "go"}, "negframe": [{"neg_cue": ["c_1_«2»"],'
        ' "neg_scopes": ["c_1_«0»", "c_1_«3»"], "negated": ["c_1_«3»"]}]},\n'
        '{"sent": {"c_2_0": "Yes"}, "negframe": []}]',
    ),
    "sfu": (
        "no1.xml",
        '<?xml version="1.0" encoding="UTF-8"?>\n<DOCUMENT><P><SENTENCE>\n<cue ID="«0»" type="«negation»"><W>not</W>'
        '</cue><xcope><ref SRC="«0»"/><C><W>so</W></C><W>good</W></xcope>\n</SENTENCE></P></DOCUMENT>\n',
    ),
    "bioscope": (
        "abstracts.xml",
        '<Annotation><DocumentSet><Document type="Abstract"><DocID>«7»</DocID><DocumentPart type="Text">\n<sentence '
        'id="«S1»">It is <xcope id="«X1»"><cue type="«negation»" ref="«X1»">not</cue> so good</xcope>.</sentence>\n'
        "</DocumentPart></Document></DocumentSet></Annotation>\n",
    ),
    "blimp": (
        "agreement.jsonl",
        '{"sentence_good": "«She» left .", "sentence_bad": "She «leave» .", "UID": "«agreement»", "pairID": "«0»"}\n'
        '{"sentence_good": "«Ann saw her» .", "sentence_bad": "«Ann saw she» .", "field": "syntax"}\n',
    ),
    "records": (
        "mine.jsonl",
        '{"words": ["Ann", "met", "Eve", "who", "she", "saw"], "links": [{"source": «4», "target": «0», '
        '"label": "«pronoun»", "kind": "«own»", "rivals": [«2»]}, [«3», «2», "«rel»"]], "spans": '
        '[{"start": «0», "end": «3», "label": "«1»", "kind": "«mention»"}], "group": "«g»", "id": "«i»"}\n'
        '{"text": "«Two parts»", "boundary": «1»}\n{"words": ["«I»", "«m»"], "text": "«I m»"}\n',
    ),
    "linktable": (
        "mine.tsv",
        "text\tsource\ttarget\tlabel\tkind\tid\nShe saw herself .\t«2»\t«0»\t«reflexive»\t«own»\t«a»\n"
        "She saw herself .\t«1»\t«0»\t«subject»\t\t«a»\nYes .\t\t\t\t\t«b»\n",
    ),
    "alignments": (
        "pairs.txt",
        "«das» «ist» «ein» «Haus» ||| «this» «is» «a» «house» ||| «0»-«0» 1«-»1 «2»p«2» «3»-«3»\n\n"
        "«ja» ||| «yes» «yes» ||| «0»-«0»\n",
    ),
    "alignments-from-1": ("pairs.txt", "«das» «Haus» ||| «the» «house» ||| «1»-«1» 2«-»2\n"),
    "alignments-swapped": ("pairs.txt", "«im» «Haus» ||| «in» «the» «house» ||| «0»-«0» «1»«p»0 «2»-«1»\n"),
    "alignments-from-1-swapped": ("pairs.txt", "«im» «Haus» ||| «in» «the» «house» ||| «1»-«1» «2»p1 «3»-«2»\n"),
    "semeval": (
        "reviews.xml",
        '<sentences><sentence id="«1»"><text>Good soup, bad staff.</text>\n<aspectTerms><aspectTerm term="«soup»" '
        'polarity="«positive»" from="«5»" to="«9»"/></aspectTerms>\n<aspectCategories><aspectCategory '
        'category="«food»" polarity="«positive»"/></aspectCategories></sentence></sentences>\n',
    ),
    "semeval-terms": (
        "laptops.xml",
        '<sentences><sentence id="«1»"><text>Good screen, bad keys.</text>\n<aspectTerms><aspectTerm term="«screen»" '
        'polarity="«positive»" from="«5»" to="«11»"/></aspectTerms></sentence></sentences>\n',
    ),
    "semeval2016": (
        "reviews16.xml",
        '<Reviews><Review rid="«7»"><sentences><sentence id="«1»"><text>Good rice.</text>\n<Opinions><Opinion '
        'target="«rice»" category="«FOOD»#«QUALITY»" polarity="«positive»" from="«5»" to="«9»"/></Opinions></sentence>'
        "</sentences></Review></Reviews>\n",
    ),
    "wikitext": ("wiki.tokens", " = «Title» = \n\n" + "\n".join(_PARAGRAPHS) + "\n"),
    "text-wrapped": ("book.txt", "\n\n".join(text.replace(" ", "\n", 1) for text in _PARAGRAPHS) + "\n"),
    "text-lines": ("lines.txt", "\n".join(_PARAGRAPHS) + "\n"),
    "sentences": ("lines.txt", "«One» line .\n«Another» .\n\n«Last» .\n"),
}
"""For each format the name of a file and what it holds; FrameNet is a folder."""


def unmark(sample: str) -> tuple[str, list[int]]:
    """The content of a sample, and the places of the characters that annotate."""
    text, places = "", []
    for part in re.split("(«[^»]*»)", sample):
        plain = part.strip("«»")
        if part.startswith("«"):
            places += range(len(text), len(text) + len(plain))
        text += plain
    return text, places


def alter(sample: str, chance: random.Random) -> str:
    """The content of a sample with another letter or digit for a character that annotates."""
    text, places = unmark(sample)
    place = chance.choice(places)
    others = "0123456789" if text[place].isdigit() else "abcdefgh"
    return text[:place] + chance.choice(others.replace(text[place], "")) + text[place + 1 :]


def read_parts(path: Path, format: str) -> list[Document | Skipped]:
    """What a corpus holds, read as a command reads it before it loads a model."""
    corpus = read(path, format=format)
    with within():
        summarize(corpus)
        return list(corpus.read_parts())


def try_corpus(folder: Path, format: str, chance: random.Random) -> str:
    """Read a sample after a mutation, or one whose annotation is altered: ``read`` or ``refused``.

    Raises:
        AssertionError: altered annotation is read as if nothing had happened.
    """
    name, sample = SAMPLES[format]
    path = folder / name
    text, places = unmark(sample)
    if not places or chance.random() < 0.7:
        path.write_bytes(damage(text, chance) if chance.random() < 0.6 else mutate(text.encode(), chance))
        expected = None
    else:
        path.write_text(text, encoding="utf-8")
        expected = read_parts(path, format)
        path.write_text(alter(sample, chance), encoding="utf-8")
    try:
        parts = read_parts(path, format)
    except HeadscopeError as error:
        check_sentence(error)
        return "refused"
    assert parts != expected, f"nobody noticed what was altered in {path.read_text()!r}"
    return "read"
