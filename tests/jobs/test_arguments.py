"""What is wrong with the arguments is said at once, in the words of what would refuse them later."""

from collections.abc import Callable

import pytest

import headscope
import tiny
from headscope import HeadscopeError
from headscope.corpora import read, summarize
from headscope.jobs.arguments import (
    FIGURES,
    check_corpora,
    check_figures,
    check_model,
    check_reducers,
    check_study,
    check_task,
)
from headscope.runner import resolve_reducers


def sentence(refuse: Callable[[], object]) -> str:
    with pytest.raises(HeadscopeError) as caught:
        refuse()
    return f"{type(caught.value).__name__}: {caught.value}"


SUMMARY = summarize(read("grammar:7"))
CASES = {
    "model": (lambda: check_model("./nowhere"), lambda: headscope.load("./nowhere")),
    "model at a path": (lambda: check_model("/nowhere/at/all"), lambda: headscope.load("/nowhere/at/all")),
    "reducer": (lambda: check_reducers("gaze"), lambda: resolve_reducers(["gaze"], SUMMARY)),
    "reducers": (lambda: check_reducers(["surface", "gaze"]), lambda: resolve_reducers(["gaze"], SUMMARY)),
    "corpus": (lambda: check_corpora("grammar:7", "nothing.txt"), lambda: headscope.read("nothing.txt")),
    "format": (lambda: check_corpora("setup.py", format="x"), lambda: headscope.read("setup.py", format="x")),
    "task": (lambda: check_task("nothing"), lambda: headscope.read_task("nothing")),
}


@pytest.mark.parametrize("case", CASES)
def test_it_is_the_sentence_that_would_come_later(case: str) -> None:
    early, late = CASES[case]
    assert sentence(early) == sentence(late)


def test_what_is_right_passes(tmp_path) -> None:
    for model in ("minilm", "google-bert/bert-base-cased", str(tmp_path), tmp_path, object()):
        check_model(model)
    for reducers in ("surface", ["relations", "mine:Reducer", object()], (), object()):
        check_reducers(reducers)
    for task in ("negation", "datasets:glue/rte", str(tmp_path)):
        check_task(task)
    for figures in FIGURES:
        check_figures(figures)
    check_corpora("grammar", None, limit=3)
    check_study("clark2019")


NOT_READ = {
    "atlas": lambda model, corpus, out: headscope.atlas(model, corpus, out),
    "measure": lambda model, corpus, out: headscope.measure(model, corpus, ["surface"], out=out / "heads.nc"),
}


@pytest.mark.parametrize("job", NOT_READ)
def test_a_job_refuses_a_model_that_is_not_there_before_it_reads_the_corpus(job: str, tmp_path) -> None:
    def documents():
        raise AssertionError("the corpus was read")
        yield

    wrong = str(tmp_path / "nowhere")
    assert sentence(lambda: NOT_READ[job](wrong, documents(), tmp_path)).startswith("ModelError: there is no folder")
    assert not list(tmp_path.iterdir())


def test_a_job_refuses_a_reducer_or_figures_that_there_are_not(tmp_path) -> None:
    model = tiny.save(tmp_path / "model")
    unknown = sentence(lambda: check_reducers("gaze"))
    assert sentence(lambda: headscope.measure(model, "grammar:7", "gaze")) == unknown
    assert sentence(lambda: headscope.atlas(model, "grammar:7", tmp_path / "atlas", reducers="gaze")) == unknown
    assert sentence(lambda: headscope.atlas(model, "grammar:7", tmp_path / "atlas", figures="some")) == (
        "HeadscopeError: there is no choice of figures 'some'; name one of reported, all, none."
    )
