"""Models in several threads: one model is measured by one after the other, two side by side, all left as they were."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Event, Thread

import pytest
import torch
import xarray as xr
from transformers import PreTrainedModel

import tiny
from headscope.capture.model.model import Model
from headscope.capture.model.turns import hold, list_configs
from headscope.errors import HeadscopeError
from headscope.runner import measure

DOCUMENTS = tiny.documents(11)


def test_threads_that_measure_one_model_agree() -> None:
    module, tokenizer = tiny.make("bert")
    before = module.config._attn_implementation
    model = Model.from_module(module, tokenizer, name="bert")
    expected = measure(model, DOCUMENTS, ["surface", "relations"]).drop_attrs()
    with ThreadPoolExecutor(5) as pool:
        tables = list(pool.map(lambda _: measure(model, DOCUMENTS, ["surface", "relations"]), range(7)))
    for table in tables:
        xr.testing.assert_identical(table.drop_attrs(), expected)
    assert module.config._attn_implementation == before


def test_threads_measure_two_models_side_by_side() -> None:
    models = [Model.from_module(*tiny.make(family), name=family) for family in ("bert", "gpt2")]
    before = [model.module.config._attn_implementation for model in models]
    expected = [measure(model, DOCUMENTS, ["surface", "relations"]).drop_attrs() for model in models]
    inside = [Event(), Event()]

    def wait_for_the_other(own: Event, other: Event) -> None:
        own.set()
        assert other.wait(60)

    handles = [
        model.module.register_forward_pre_hook(lambda *_, own=own, other=other: wait_for_the_other(own, other))
        for model, own, other in zip(models, inside, inside[::-1], strict=True)
    ]
    with ThreadPoolExecutor(2) as pool:
        tables = list(pool.map(lambda model: measure(model, DOCUMENTS, ["surface", "relations"]), models))
    for handle in handles:
        handle.remove()
    for table, alone in zip(tables, expected, strict=True):
        xr.testing.assert_identical(table.drop_attrs(), alone)
    assert [model.module.config._attn_implementation for model in models] == before


def wrap_twice() -> list[PreTrainedModel]:
    """One module, twice."""
    module, _ = tiny.make("bert")
    return [module, module]


def share_a_config() -> list[PreTrainedModel]:
    """Two modules with one configuration."""
    module, _ = tiny.make("bert")
    torch.manual_seed(7)
    return [module, type(module)(module.config)]


@pytest.mark.parametrize("make", [wrap_twice, share_a_config])
def test_threads_take_turns_where_two_models_have_one_configuration(make: Callable[[], list[PreTrainedModel]]) -> None:
    modules, (_, tokenizer) = make(), tiny.make("bert")
    assert modules[0].config is modules[1].config
    before = modules[0].config._attn_implementation
    models = [Model.from_module(module, tokenizer, name=str(i)) for i, module in enumerate(modules)]
    expected = [measure(model, DOCUMENTS, ["surface", "relations"]).drop_attrs() for model in models]
    with ThreadPoolExecutor(5) as pool:
        tables = list(pool.map(lambda model: measure(model, DOCUMENTS, ["surface", "relations"]), models * 3))
    for table, alone in zip(tables, expected * 3, strict=True):
        xr.testing.assert_identical(table.drop_attrs(), alone)
    assert modules[0].config._attn_implementation == before


def test_an_error_in_one_thread_lets_the_next_one_run() -> None:
    model = Model.from_module(*tiny.make("bert"), name="bert")

    def fail() -> None:
        with hold(list_configs(model.module)):
            raise ValueError

    with ThreadPoolExecutor(1) as pool:
        assert isinstance(pool.submit(fail).exception(60), ValueError)
        assert pool.submit(measure, model, DOCUMENTS, ["surface"]).result(60)
    with hold(list_configs(model.module)):
        measure(model, DOCUMENTS, ["surface"])  # in one thread there is nobody to wait for


def test_another_thread_that_runs_the_model_meanwhile_is_told_so() -> None:
    module, tokenizer = tiny.make("bert")
    model = Model.from_module(module, tokenizer, name="bert")
    inside, done, caught = Event(), Event(), []

    def wait(*_: object) -> None:
        inside.set()
        done.wait(60)

    handle = module.encoder.layer[1].register_forward_pre_hook(lambda *_: wait() if under_observation() else None)

    def under_observation() -> bool:
        return module.config._attn_implementation == "headscope"

    thread = Thread(target=lambda: caught.append(measure(model, DOCUMENTS, ["surface"])))
    thread.start()
    assert inside.wait(60)
    with pytest.raises(HeadscopeError, match=r"^a model was run while headscope measures it in another thread; wait"):
        module(torch.tensor([[1, 2, 3]]))
    done.set()
    thread.join()
    handle.remove()
    assert len(caught) == 1
    assert module(torch.tensor([[1, 2, 3]])).last_hidden_state.isfinite().all()
