"""Nothing is shown that is not so: the commands, messages and examples of the documentation, against the code."""

import re
import shlex
from pathlib import Path

import pytest
import typer.main

from documentation import DOCS, PAGES, REFERENCE, ROOT, blocks, check_links
from headscope import cli
from headscope.analyse.ranktests import least_rank_sum, least_signed_rank

SOURCE = "\n".join(path.read_text() for path in (ROOT / "src").rglob("*.py"))
COMMANDS = typer.main.get_command(cli.app).commands

by_page = pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))


def shell_lines(page: Path) -> list[str]:
    return [line for block in blocks(page, "sh") for line in block.splitlines() if line.strip()]


# ----------------------------------------------------------------- commands


@by_page
def test_every_command_shown_exists_with_its_options(page) -> None:
    for line in shell_lines(page):
        for part in line.split("&&"):
            words = shlex.split(part, comments=True)
            if words[:1] != ["headscope"]:
                continue
            command = COMMANDS[words[1]]
            known = {name for parameter in command.params for name in parameter.opts + parameter.secondary_opts}
            options = {word for word in words[2:] if word.startswith("-") and not re.fullmatch(r"-[\d.]+", word)}
            assert options <= known, line


def test_the_readme_holds_the_two_commands_that_the_gate_runs() -> None:
    setup = [line for line in shell_lines(ROOT / "README.md") if line.startswith("pip install")]
    assert setup == [
        'pip install -c constraints.txt ".[demo]" && headscope atlas',
        'pip install -c constraints.txt ".[demo,dev]" && pytest',
    ]
    assert "grep -x 'pip install .*' README.md" in (ROOT / ".ci" / "run").read_text()


# ----------------------------------------------------------------- messages


def test_every_message_explained_is_one_that_is_said() -> None:
    lines = (DOCS / "errors.md").read_text().splitlines()
    messages = [line.partition("—")[0] for line in lines if line.startswith("- ")]
    quoted = [part for message in messages for part in re.findall(r"`([^`]+)`", message)]
    assert len(quoted) > 20
    source = re.sub(r'"\s+f?"', "", SOURCE)  # sentences are broken over several literals
    for part in quoted:
        assert part in source, part


# -------------------------------------------------------------------- links


@by_page
def test_links_between_pages_lead_somewhere(page) -> None:
    # The reference is no page of the repository, even where it has been built.
    assert not [target for target in check_links(page) if target.is_relative_to(REFERENCE)]


def test_the_index_leads_to_every_page() -> None:
    index = (DOCS / "index.md").read_text()
    for page in (page for page in PAGES if page.is_relative_to(DOCS)):
        assert page.name == "index.md" or f"]({page.relative_to(DOCS)}" in index, page


# ------------------------------------------------------------------- Python

RUN_ELSEWHERE = {  # page: the file that runs its Python
    "howto/notebook.md": "tools/test_make_notebook.py",
    "howto/top-heads.md": "test_short_scripts.py",
    "howto/two-models.md": "test_short_scripts.py",
    "own-reducer.md": "test_own_reducer.py",
    "howto/attend.md": "test_attention_maps.py",
    "howto/check.md": "commands/test_check.py",
    "howto/decoders.md": "reducers/test_induction.py",
    "howto/explore.md": "commands/test_explore.py",
    "howto/in-memory.md": "test_in_memory.py",
    "howto/own-hypothesis.md": "corpora/test_linktable.py",
    "howto/paper-figures.md": "view/test_bare_figures.py",
    "howto/replicate.md": "commands/test_replication.py",
    "howto/reproduce-a-paper.md": "studies/test_study_command.py",
    "howto/saved-attention.md": "capture/test_saved.py",
}
RUN_IN_TEST_DOCS_PYTHON = (
    "README.md",
    "docs/tutorial.md",
    "docs/howto/compare.md",
    "docs/howto/adapters.md",
    "docs/howto/difference.md",
    "docs/howto/conversations.md",
    "docs/howto/your-model.md",
    "docs/howto/read-a-table.md",
    "docs/explanation/seam.md",
    "docs/howto/disable-heads.md",
    "docs/howto/gradients.md",
    "docs/howto/head-map.md",
    "docs/howto/patterns.md",
    "docs/howto/probe.md",
    "docs/howto/views.md",
)


def test_the_python_of_every_page_is_run() -> None:
    written = {str(page.relative_to(ROOT)) for page in PAGES if blocks(page, "python")}
    assert written <= {*RUN_IN_TEST_DOCS_PYTHON, *(f"docs/{page}" for page in RUN_ELSEWHERE)}
    for page, file in RUN_ELSEWHERE.items():
        if (DOCS / page).exists():
            assert Path(page).name in (ROOT / "tests" / file).read_text()


def test_the_smallest_p_values_of_few_runs_are_as_told() -> None:
    page = (DOCS / "howto" / "compare.md").read_text()
    rows = re.findall(r"^\| (\d+) \| ([\d.]+) \| ([\d.]+) \|$", page, flags=re.MULTILINE)
    assert len(rows) == 5
    for runs, *shown in rows:
        least = (least_rank_sum(int(runs), int(runs)), least_signed_rank(int(runs)))
        assert [float(value) for value in shown] == pytest.approx(least, rel=0.03)
