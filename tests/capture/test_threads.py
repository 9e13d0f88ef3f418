"""One model in several threads: measured one after the other, and left as it was."""

from concurrent.futures import ThreadPoolExecutor
from threading import Event, Thread

import pytest
import torch
import xarray as xr

import tiny
from headscope.capture.model import Model
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
