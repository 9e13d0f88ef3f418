"""The values that a request names, so that nothing heavy is imported for its help, are those of what it runs."""

from inspect import isfunction, signature
from typing import Any

import pytest

import headscope
from headscope.analyse.lesions import MATCHES
from headscope.capture.model.device_names import AUTO, DTYPES
from headscope.capture.open.loading import load
from headscope.capture.passes.stream import BATCH_TOKENS
from headscope.commands.atlas.request import Atlas
from headscope.commands.disable.request import Disable
from headscope.commands.lesions.request import Lesions
from headscope.commands.measure.request import Measure
from headscope.commands.patterns.request import Patterns
from headscope.commands.record import Request
from headscope.commands.study.request import Study
from headscope.commands.tune.request import Tune
from headscope.intervene.edit import WAYS
from headscope.learn.training_settings import LEAST_TOKENS, PRECISIONS, SELECT, Settings
from headscope.runner import Plan


def find_defaults(name: str) -> set[Any]:
    """The defaults of a parameter in all public functions that have it."""
    functions = [getattr(headscope, each) for each in dir(headscope)]
    parameters = [signature(each).parameters for each in functions if isfunction(each)]
    return {each[name].default for each in parameters if name in each}


@pytest.mark.parametrize(
    ("record", "name", "choices"),
    [
        (Lesions, "match", MATCHES),
        (Tune, "precision", PRECISIONS),
        (Measure, "dtype", DTYPES),
        (Tune, "select", SELECT),
        (Study, "select", SELECT),
    ],
)
def test_a_request_has_the_choices_of_what_it_runs(
    record: type[Request[Any]], name: str, choices: tuple[str, ...]
) -> None:
    assert tuple(record.options[name].choices) == choices


def test_every_way_of_disabling_is_one_of_the_seam() -> None:
    for record in (Disable, Lesions):
        assert {*record.options["how"].choices} < {*WAYS}


def test_a_request_has_the_least_values_and_the_defaults_of_what_it_runs() -> None:
    assert Tune.options["max_tokens"].at_least == Disable.options["max_tokens"].at_least == LEAST_TOKENS
    assert Plan.batch_tokens is None
    assert Atlas.options["batch_tokens"].unset.startswith(f"{BATCH_TOKENS}; on a GPU")
    assert (Atlas.options["device"], Atlas.options["dtype"]) == (Disable.options["device"], Disable.options["dtype"])
    assert {signature(load).parameters["device"].default, Settings.device, *find_defaults("device")} == {AUTO}
    assert Atlas.options["pair_tokens"].unset == Patterns.options["pair_tokens"].unset == str(Plan.pair_tokens)
    request = Tune("negation", "minilm", "runs")
    assert request.settings == Settings()
