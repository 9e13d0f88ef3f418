"""What is wrong with the arguments is said at once, in the words of what would refuse them later."""

from collections.abc import Callable
from pathlib import Path

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
    check_other_tables,
    check_output_file,
    check_output_folder,
    check_reducers,
    check_runs_folder,
    check_task,
    check_training,
    check_views,
    open_runs,
    read_tables,
)
from headscope.jobs.ledger_arguments import check_tokens, read_prompts
from headscope.jobs.study_arguments import check_lesions_of_study, check_study, check_study_inputs
from headscope.runner import resolve_reducers
from toys import classification


def sentence(refuse: Callable[[], object]) -> str:
    with pytest.raises(HeadscopeError) as caught:
        refuse()
    return f"{type(caught.value).__name__}: {caught.value}"


FILE = Path(__file__)
FOLDER = FILE.parent
NO_TUNING = {
    "seeds": None, "epochs": None, "learning_rate": None, "task": "", "max_examples": None, "select": "validation",
}  # fmt: skip
SUMMARY = summarize(read("grammar:7"))
CASES = {
    "model": (lambda: check_model("./nowhere"), lambda: headscope.load("./nowhere")),
    "model at a path": (lambda: check_model("/nowhere/at/all"), lambda: headscope.load("/nowhere/at/all")),
    "GGUF file": (lambda: check_model("nowhere.gguf"), lambda: headscope.load("nowhere.gguf")),
    "reducer": (lambda: check_reducers("gaze"), lambda: resolve_reducers(["gaze"], SUMMARY)),
    "reducers": (lambda: check_reducers(["surface", "gaze"]), lambda: resolve_reducers(["gaze"], SUMMARY)),
    "corpus": (lambda: check_corpora("grammar:7", "nothing.txt"), lambda: headscope.read("nothing.txt")),
    "format": (lambda: check_corpora("setup.py", format="x"), lambda: headscope.read("setup.py", format="x")),
    "task": (lambda: check_task("nothing"), lambda: headscope.read_task("nothing")),
    "patterns": (
        lambda: check_corpora("grammar:7", patterns="nothing.json"),
        lambda: headscope.read("grammar:7", patterns="nothing.json"),
    ),
    "malformed patterns": (
        lambda: check_corpora("grammar:7", patterns=FILE), lambda: headscope.read("grammar:7", patterns=FILE),
    ),
    "runs": (
        lambda: open_runs("nowhere", None),
        lambda: headscope.measure("minilm", "grammar:7", "surface", runs="nowhere"),
    ),
    "runs on two corpora": (
        lambda: open_runs(FOLDER, "grammar:7:5"),
        lambda: headscope.measure("minilm", "grammar:7", "surface", runs=FOLDER, replicate="grammar:7:5"),
    ),
    "table": (
        lambda: read_tables(before=Path("nothing.nc"), after=None), lambda: headscope.compare("nothing.nc", "b.nc"),
    ),
    "half of another corpus": (
        lambda: check_other_tables(None, "a.nc", None, None),
        lambda: headscope.compare("b.nc", "c.nc", other_before="a.nc"),
    ),
    "seeds": (
        lambda: check_training([3, 3]), lambda: headscope.tune(classification(), "minilm", seeds=[3, 3]),
    ),
    "settings": (
        lambda: check_training(3, epochs=0), lambda: headscope.tune(classification(), "minilm", epochs=0),
    ),
    "corpora of a study": (
        lambda: check_study_inputs("zhao2020", Path("nowhere"), {}, NO_TUNING),
        lambda: headscope.study("zhao2020", data="nowhere"),
    ),
    "corpus of a table": (
        lambda: check_study_inputs("zhao2020", FOLDER, {"other": "a"}, NO_TUNING),
        lambda: headscope.study("zhao2020", data=FOLDER, corpora={"other": "a"}),
    ),
    "limit without lesions": (
        lambda: check_lesions_of_study("zhao2020", {}, {"blimp": 3}, None),
        lambda: headscope.study("zhao2020", data=FOLDER, limits={"blimp": 3}),
    ),
    "start without lesions": (
        lambda: check_lesions_of_study("zhao2020", {}, None, "<s>"),
        lambda: headscope.study("zhao2020", data=FOLDER, start="<s>"),
    ),
    "limit of other lesions": (
        lambda: check_lesions_of_study("sashida2026", {}, {"lambada": 3}, None),
        lambda: headscope.study("sashida2026", data=FOLDER, limits={"lambada": 3}),
    ),
    "one example of lesions": (
        lambda: check_lesions_of_study("sashida2026", {}, {"blimp": 1}, None),
        lambda: headscope.study("sashida2026", data=FOLDER, limits={"blimp": 1}),
    ),
    "lesions in memory": (
        lambda: check_lesions_of_study("sashida2026", {"blimp": ["a b"]}, None, None),
        lambda: headscope.study("sashida2026", data=FOLDER, corpora={"blimp": ["a b"]}),
    ),
    "tokens of a ledger": (
        lambda: check_tokens(0), lambda: headscope.measure_ledger("minilm", "nothing.jsonl", tokens=0),
    ),
    "prompts of a ledger": (
        lambda: read_prompts("nothing.jsonl"), lambda: headscope.measure_ledger("minilm", "nothing.jsonl"),
    ),
    "folder of a ledger": (
        lambda: check_output_folder(FILE, "the ledger", "ledger.json"),
        lambda: headscope.measure_ledger("minilm", [{"documents": ["a", "b"], "question": "c"}], FILE),
    ),
    "split without runs": (
        lambda: check_study_inputs("zhao2020", FOLDER, {}, NO_TUNING | {"select": "test"}),
        lambda: headscope.study("zhao2020", data=FOLDER, select="test"),
    ),
    "folder of runs": (
        lambda: check_runs_folder(FILE, control=True, resume=False),
        lambda: headscope.tune(classification(), "minilm", FILE),
    ),
    "file": (
        lambda: check_output_file(FOLDER), lambda: headscope.measure("minilm", "grammar:7", "surface", out=FOLDER),
    ),
    "views": (
        lambda: check_views(["norm", "norm"]), lambda: headscope.atlas("minilm", "grammar:7", views=["norm", "norm"]),
    ),
    "folder of an atlas": (
        lambda: check_output_folder(FILE, "the atlas", "manifest.json"), lambda: headscope.atlas(out=FILE),
    ),
    "folder of a comparison": (
        lambda: check_output_folder(FILE, "the comparison", "comparison.json"),
        lambda: headscope.compare("a.nc", "b.nc", out=FILE),
    ),
    "folder of a study": (
        lambda: check_output_folder(FILE, "the study", "zhao2020.json"), lambda: headscope.study("zhao2020", out=FILE),
    ),
}  # fmt: skip


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
