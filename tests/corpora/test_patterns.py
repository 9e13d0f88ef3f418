"""Files of patterns: what they say, what becomes of it in a corpus, and what is refused in which sentence."""

import hashlib
import json
import sys
from pathlib import Path

import pytest

import headscope
import tiny
from headscope.capture.model.model import Model
from headscope.corpora import summarize
from headscope.corpora.spacy_patterns import read
from headscope.errors import CorpusError, HeadscopeError
from refusals import refusal

pytest.importorskip("spacy", reason="patterns are matched by spaCy, which comes with the extra `spacy`")

FILE = "own.json"
EXAMPLE = '{"patterns": {"determiner": {"tokens": [{"POS": "DET"}, {"POS": "NOUN"}], "source": 0, "target": 1}}}'
WANTED = (
    f'a pattern has "tokens" or "dependencies" and perhaps "source", "target", "kind", as in {EXAMPLE}: correct it.'
)
OBJECT = f'a file of patterns is one object, such as {EXAMPLE}, perhaps with a "pipeline": correct it.'
TWO = [{"LOWER": "a"}, {"LOWER": "b"}]
ENDS = {"source": 0, "target": 1}
VERB = {"RIGHT_ID": "verb", "RIGHT_ATTRS": {"POS": "VERB"}}
CHILD = {"LEFT_ID": "verb", "REL_OP": ">", "RIGHT_ID": "it", "RIGHT_ATTRS": {}}
NODES = {"dependencies": [VERB, CHILD], "source": "it", "target": "verb"}


def refused(path: Path) -> str:
    return refusal(lambda one: iter([read(one)]), path)


def refused_of(file, **named: object) -> str:
    return refused(file(json.dumps({"patterns": named})))


def test_a_corpus_with_patterns_has_their_links_and_keeps_its_name(file):
    corpus = headscope.read("grammar:101", patterns=file(EXAMPLE))
    bare = headscope.read("grammar:101")
    assert (corpus.name, corpus.format) == ("grammar:101", "grammar")
    found, without = summarize(corpus), summarize(bare)
    assert list(found.links["pattern"]) == ["determiner"]
    assert found.links["pattern"]["determiner"] > 53
    del found.links["pattern"]
    assert found == without


def test_the_hash_is_of_the_corpus_and_the_bytes_of_the_patterns(file):
    bare = headscope.read("grammar:7").sha256
    own = hashlib.sha256(EXAMPLE.encode()).hexdigest()
    corpus = headscope.read("grammar:7", patterns=file(EXAMPLE))
    assert corpus.sha256 == hashlib.sha256(f"{bare}\n{own}\n".encode()).hexdigest()
    assert hash(corpus) == hash(headscope.read("grammar:7", patterns=file(EXAMPLE)))
    assert headscope.read("grammar:7", patterns=file(EXAMPLE + " ")).sha256 != corpus.sha256


def test_a_corpus_that_a_pattern_matches_nowhere_is_refused_when_it_is_read(file, tmp_path):
    corpus = headscope.read("grammar:7", patterns=file('{"patterns": {"own": {"tokens": [{"LOWER": "zyx"}]}}}'))
    with pytest.raises(CorpusError) as caught:
        summarize(corpus)
    assert str(caught.value) == (
        f"the pattern \"own\" of {tmp_path / FILE} matches nothing in the corpus 'grammar:7', so there would be no row "
        f"for it: correct it, or leave it out."
    )


def test_a_corpus_without_documents_is_refused_for_that(file, tmp_path):
    empty = tmp_path / "empty.txt"
    empty.write_text("Too short.\n")
    with pytest.raises(CorpusError, match=r"gave no document; expected two consecutive paragraphs"):
        list(headscope.read(empty, format="text-lines", patterns=file(EXAMPLE)))


def test_the_table_says_which_patterns_and_which_spacy(file):
    model = Model.from_module(*tiny.make("bert"), name="tiny")
    corpus = headscope.read("grammar:41", patterns=file(EXAMPLE))
    table = headscope.measure(model, corpus, ["relations"])
    assert json.loads(table.attrs["patterns"]) == json.loads(EXAMPLE)
    assert "spacy" in json.loads(table.attrs["versions"])
    assert table["relation_count"].sel(relation="pattern determiner") > 11
    bare = headscope.measure(model, headscope.read("grammar:41"), ["relations"])
    assert "patterns" not in bare.attrs
    assert "spacy" not in json.loads(bare.attrs["versions"])


def test_an_absent_file_is_refused(tmp_path):
    path = tmp_path / "absent.json"
    assert refused(path) == f"there is no file of patterns {str(path)!r}; name one in JSON, such as {EXAMPLE}."


def test_a_file_of_many_megabytes_is_refused(tmp_path):
    path = tmp_path / "patterns.json"
    with path.open("wb") as opened:
        opened.truncate(16_000_001)
    with pytest.raises(HeadscopeError) as seen:
        read(path)
    assert str(seen.value) == (
        f"{path} has 16,000,001 bytes, and a file of patterns has 16,000,000 at most; give a file that is one."
    )


def test_what_is_not_json_is_refused(file):
    path = file('{"patterns":\n {"a": }}')
    assert refused(path) == (
        f"{path}:2 is not JSON (Expecting value at character 8); a file of patterns is one object, such as {EXAMPLE}: "
        f"correct the line."
    )


@pytest.mark.parametrize("text", ["[" * 100_000, "[" + "1" * 5000 + "]"], ids=["too deep", "too long a number"])
def test_json_that_python_does_not_read_is_refused(file, text):
    path = file(text)
    assert refused(path) == (
        f"{path} is not JSON that can be read (too long a number, or brackets too deep); a file of patterns is one "
        f"object, such as {EXAMPLE}: correct the line."
    )


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("[]", f"[]; {OBJECT}"),
        ("{}", f"{{}}; {OBJECT}"),
        ('{"patterns": {"a": {}}, "model": 1}', f'{{"patterns": {{"a": {{}}}}, "model": 1}}; {OBJECT}'),
        ('{"patterns": {}}', f'the "patterns" {{}}; {OBJECT}'),
        ('{"patterns": [7]}', f'the "patterns" [7]; {OBJECT}'),
        (
            '{"patterns": {"a": {}}, "pipeline": 7}',
            'the "pipeline" 7; write the name of one, such as "en_core_web_sm".',
        ),
        (
            '{"patterns": {"a": {}, "a": {}}}',
            'the key "a" twice in one object, of which one would be lost; expected each key once: join the '
            "two, or leave one out.",
        ),
    ],
)
def test_a_file_that_is_no_object_of_patterns_is_refused(file, content, problem):
    path = file(content)
    assert refused(path) == f"{path} has {problem}"


@pytest.mark.parametrize(
    ("entry", "problem"),
    [
        ([], f"is []; {WANTED}"),
        ({"source": 0}, f'is {{"source": 0}}; {WANTED}'),
        ({"tokens": TWO, "label": "x", "to": 1}, f'has the unknown "label", "to"; {WANTED}'),
        ({"tokens": []}, "matches []; expected a list of objects, one a token: correct it."),
        ({"tokens": [[{}]]}, "matches [[{}]]; expected a list of objects, one a token: correct it."),
        ({"tokens": TWO, "kind": " "}, 'has the kind " "; it is a string with a visible character: correct it.'),
        (
            {"tokens": [{"_": {"own": 1}}]},
            'asks for "_", what a program has added to spaCy\'s tokens; here no program does: leave it out.',
        ),
        ({"tokens": TWO, "source": 0}, "has no target; a link needs both, each one of 0, 1: correct it."),
        (
            {"tokens": TWO, "source": True, "target": 0},
            "has the source true; a link needs both, each one of 0, 1: correct it.",
        ),
        (
            {"tokens": TWO, "source": 0, "target": 2},
            "has the target 2; a link needs both, each one of 0, 1: correct it.",
        ),
        (
            {"dependencies": [VERB, CHILD], "source": "it", "target": "vreb"},
            'has the target "vreb"; a link needs both, each one of "verb", "it": correct it.',
        ),
        ({"dependencies": [VERB]}, 'has no source; a link needs both, each one of "verb": correct it.'),
        (
            {"tokens": TWO, "source": 1, "target": 1},
            "has source and target in one place; a link joins two words: correct one of them.",
        ),
        (
            {"tokens": [{"LOWER": "a", "op": "?"}, {}], **ENDS},
            'has the source 0, a place with an "OP"; a link joins single words, which of several is not known: leave '
            "the operator out, or add a place without one.",
        ),
        (
            {"tokens": [{"OP": "*"}, {}, {"OP": "+"}, {}], "source": 1, "target": 3},
            'has an "OP" in more than one of the stretches before, between and after source and target, so that spaCy '
            "would not return all links: keep operators to one of them, or write several patterns.",
        ),
        (
            NODES | {"dependencies": [VERB, CHILD | {"RIGHT_ATTRS": {"OP": "{2}"}}]},
            'has an "OP" in node "it"; a node is one word: leave it out.',
        ),
        (
            NODES | {"dependencies": [VERB, {"RIGHT_ID": "it"}]},
            'has {"RIGHT_ID": "it"} as node 1, counted from 0; expected "LEFT_ID", "REL_OP", "RIGHT_ID", '
            '"RIGHT_ATTRS", of which "RIGHT_ATTRS" is an object: correct it.',
        ),
        (
            NODES | {"dependencies": [VERB | {"RIGHT_ATTRS": "VERB"}, CHILD]},
            'has {"RIGHT_ID": "verb", "RIGHT_ATTRS": "VERB"} as node 0, counted from 0; expected "RIGHT_ID", '
            '"RIGHT_ATTRS", of which "RIGHT_ATTRS" is an object: correct it.',
        ),
    ],
)
def test_a_pattern_of_another_form_is_refused(file, tmp_path, entry, problem):
    assert refused_of(file, own=entry) == f'the pattern "own" of {tmp_path / FILE} {problem}'


@pytest.mark.parametrize(
    ("entry", "reason"),
    [
        ({"tokens": [{"PSO": "DET"}]}, "[pattern -> 0 -> PSO] Extra inputs are not permitted"),
        ({"tokens": [{"TEXT": {"REGEX": "("}}]}, "missing ), unterminated subpattern at position 0"),
        (
            NODES | {"dependencies": [VERB, CHILD | {"RIGHT_ATTRS": {"PSO": "DET"}}]},
            "[pattern -> 0 -> PSO] Extra inputs are not permitted",
        ),
        (
            NODES | {"dependencies": [VERB, CHILD | {"REL_OP": ">>>"}]},
            "[E1007] Unsupported DependencyMatcher operator '>>>'",
        ),
        (
            NODES | {"dependencies": [VERB, CHILD | {"LEFT_ID": "vreb"}]},
            "[E101] RIGHT_ID should be a new node and LEFT_ID should already have have been declared in previous edges",
        ),
    ],
)
def test_what_spacy_refuses_is_said_in_its_words(file, tmp_path, entry, reason):
    assert refused_of(file, own=entry) == (
        f'the pattern "own" of {tmp_path / FILE} is refused by spaCy ({reason}); '
        f"see https://spacy.io/usage/rule-based-matching: correct it."
    )


def test_a_pipeline_that_is_not_installed_is_refused(file):
    path = file(json.dumps({"pipeline": "xx_none_sm", "patterns": {"own": {"tokens": TWO}}}))
    assert refused(path) == (
        f"the patterns {str(path)!r} name the pipeline 'xx_none_sm', which spaCy cannot load ([E050] Can't find "
        f"model 'xx_none_sm'. It doesn't seem to be a Python package or a valid path to a data directory); install it "
        f"(python -m spacy download NAME), or leave it out and match what the corpus is annotated with."
    )


def test_without_spacy_the_extra_is_named(file, monkeypatch):
    monkeypatch.setitem(sys.modules, "spacy", None)
    path = file(EXAMPLE)
    assert refused(path) == (
        f"the patterns {str(path)!r} are matched by spaCy, which is not installed; install headscope with the extra "
        f"`spacy`: pip install 'headscope[spacy]'."
    )
