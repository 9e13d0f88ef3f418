"""The settings of reducers, written and read again."""

import json
from dataclasses import replace

import pytest

import tiny
import tiny_pairs
from headscope.corpora import CorpusSummary, summarize
from headscope.errors import HeadscopeError
from headscope.reducers import REDUCERS, AverageMap, SparseShapes, Streaming, Surface, WordClass
from headscope.reducers.settings import apply_settings, write_settings
from headscope.reducers.support.permutations import with_permutations
from headscope.runner import resolve_reducers
from own import LastToken


def find_summary(name: str) -> CorpusSummary:
    """The summary of a corpus that the reducer can be made for."""
    if name == "alignment":
        return summarize(tiny_pairs.pairs())
    summary = summarize(tiny.documents(11))
    return replace(summary, links={"role": {"ARG0": 7, "ARGM-TMP": 5, "ARG1": 3}}) if name == "roles" else summary


@pytest.mark.parametrize("name", REDUCERS)
def test_every_reducer_is_read_as_it_was_written(name: str) -> None:
    summary = find_summary(name)
    reducer = with_permutations(REDUCERS[name].for_corpus(summary), 13)
    written = json.loads(json.dumps(write_settings(reducer)))
    assert repr(apply_settings(REDUCERS[name].for_corpus(summary), written)) == repr(reducer)


def test_what_was_set_is_kept() -> None:
    surface = Surface(offsets=(-2, 3), classes=(WordClass("no", ("no", "n't")),), edges=(1, 2, 4))
    for reducer in (surface, Streaming(first=2, recent=7)):
        written = json.loads(json.dumps(write_settings(reducer)))
        assert apply_settings(type(reducer)(), written) == reducer


def test_functions_are_not_written() -> None:
    reducer = Surface(classes=(WordClass("odd", lambda document: range(1, len(document.words), 2)),))
    assert "classes" not in write_settings(reducer)


def test_nothing_but_parts_of_settings_is_made() -> None:
    with pytest.raises(KeyError):
        apply_settings(Surface(), {"edges": {"part": "Path"}})


def test_a_reducer_without_settings_stays_as_it_is() -> None:
    own = LastToken()
    assert apply_settings(own, write_settings(own)) is own


def resolve(*names: str) -> list:
    return resolve_reducers(names, find_summary("roles"))


def test_settings_are_written_behind_a_colon() -> None:
    texts = (
        "surface:offsets=-2|3,words.no=not|n't,edges=1|2|5,words.the=the",
        "average_map:bins=4",
        "sparse_shapes:budget=0.1",
    )
    classes = (WordClass("no", ("not", "n't")), WordClass("the", ("the",)))
    surface, average_map, sparse_shapes, streaming, roles, aspects = [
        *resolve(*texts, "streaming:first=2,recent=7", "roles:labels=ARG0,max_words=17"),
        *resolve_reducers(["aspects:sentiment=good|Bad"], replace(find_summary("roles"), spans={"asked": 3})),
    ]
    assert surface == Surface(offsets=(-2, 3), classes=classes, edges=(1, 2, 5))
    assert average_map == AverageMap(bins=4)
    assert sparse_shapes == SparseShapes(0.1, sparse_shapes.fold_assignment)
    assert streaming == Streaming(streaming.fold_assignment, first=2, recent=7)
    assert (roles.labels, roles.max_words, roles.max_element) == (("ARG0",), 17, 3)
    assert aspects.sentiment == ("good", "bad")


REFUSED = {
    "surface:": "the reducer `surface` has no setting ''; it has offsets, words.NAME, edges: for example "
    "'surface:offsets=-2|3'.",
    "surface:Surface": "the reducer `surface` has no setting 'Surface'; it has offsets, words.NAME, edges: for "
    "example 'surface:offsets=-2|3'.",
    "surface:words.=not": "the reducer `surface` has no setting 'words.=not'; it has offsets, words.NAME, edges: for "
    "example 'surface:offsets=-2|3'.",
    "surface:offsets=2,classes=no": "the reducer `surface` has no setting 'classes=no'; it has offsets, words.NAME, "
    "edges: for example 'surface:offsets=-2|3'.",
    "surface:offsets=2|1.5": "the reducer `surface` cannot have '2|1.5' for offsets; give whole numbers with | between "
    "them, as in 'surface:offsets=-2|3'.",
    "surface:words.no=not|": "the reducer `surface` cannot have 'not|' for words.no; give words with | between them, "
    "as in 'surface:words.no=not|never'.",
    "surface:offsets=2,offsets=3": "the reducer `surface` has offsets twice in 'offsets=2,offsets=3'; give it once, as "
    "in 'surface:offsets=-2|3'.",
    "surface:words.no=not,words.no=never": "the class no is named twice; name each once.",
    "average_map:bins=many": "the reducer `average_map` cannot have 'many' for bins; give a whole number, as in "
    "'average_map:bins=3'.",
    "sparse_shapes:budget=": "the reducer `sparse_shapes` cannot have '' for budget; give a number, as in "
    "'sparse_shapes:budget=0.05'.",
    "copying:bins=4": "the reducer `copying` has no settings; leave out ':bins=4'.",
}


@pytest.mark.parametrize("text", REFUSED)
def test_what_is_no_setting_is_refused_in_a_sentence(text: str) -> None:
    with pytest.raises(HeadscopeError) as refused:
        resolve(text)
    assert str(refused.value) == REFUSED[text]
