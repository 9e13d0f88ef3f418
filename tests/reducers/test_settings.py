"""The settings of reducers, written and read again."""

import json
from dataclasses import replace

import pytest

import tiny
import tiny_pairs
from headscope.corpora import CorpusSummary, summarize
from headscope.reducers import REDUCERS, Streaming, Surface, WordClass
from headscope.reducers.settings import apply_settings, write_settings
from headscope.reducers.support.permutations import with_permutations
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
