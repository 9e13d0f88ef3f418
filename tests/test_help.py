"""The help of every command: complete, in groups, and readable on a narrow terminal."""

import re

import pytest
import typer.main

from headscope import cli
from headscope.commands.option import ARGUMENTS
from headscope.commands.option import GROUPS as ALL_GROUPS

COMMANDS = typer.main.get_command(cli.app).commands
GROUPS = {*ALL_GROUPS} - {ARGUMENTS}
WRITTEN = {
    "atlas": ("heads.nc", "untrained.nc", "figures/", "tables/", "manifest.json", "atlas.html", "replication.nc"),
    "align": ("heads.nc", "untrained.nc", "alignment.csv", "generation_config.json"),
    "tune": ("runs.json", "seed-1/", "control/"),
    "check": ("check.json", "check.csv"),
    "export": ("heads.json", "full_attention_heads.tsv", "heads.md"),
    "ledger": ("ledger.nc", "ledger.csv", "content.csv", "tokens.csv", "figures/"),
    "measure": ("heads.nc",),
    "merge": ("heads.nc",),
    "compare": ("comparison.md", "comparisons/", "figures/", "tables/", "comparison.json"),
    "probe": ("probe.nc", "probe.csv", "lengths.csv", "figures/"),
    "study": ("STUDY.md", "STUDY.csv", "STUDY.json", "figures/", "runs/"),
}


@pytest.fixture
def helped(run, monkeypatch):
    """The help of a command on a terminal with so many columns, as lines."""

    def show(name: str, columns: int) -> list[str]:
        monkeypatch.setenv("COLUMNS", str(columns))
        code, printed, complaint = run(*name.split(), "--help")
        assert (code, complaint) == (0, "")
        return printed.splitlines()

    return show


@pytest.mark.parametrize("columns", [40, 61, 80, 163])
@pytest.mark.parametrize("name", ["", *COMMANDS])
def test_no_line_is_wider_than_the_terminal_and_no_word_is_missing(helped, name: str, columns: int) -> None:
    lines = helped(name, columns)
    examples = lines.index("Examples") if "Examples" in lines else len(lines)
    assert max(map(len, lines[:examples])) <= min(columns, 100)
    words = " ".join(" ".join(lines).split())
    command = COMMANDS[name] if name else typer.main.get_command(cli.app)
    for paragraph in command.help.split("\n\n"):
        assert " ".join(paragraph.split()) in words
    for parameter in command.params:
        assert parameter.help in words
    for example in (command.epilog or "").splitlines():  # in one piece, so that it can be copied
        assert f"  {example}" in lines[examples:]


@pytest.mark.parametrize("name", sorted(set(COMMANDS) - {"list"}))
def test_every_option_is_in_a_group_and_says_its_default_and_an_example(helped, name: str) -> None:
    lines, groups = helped(name, 80), {}
    for line in lines:
        if line and not line.startswith(" "):
            groups[line] = []
        elif groups:
            groups[[*groups][-1]].append(line)
    for parameter in COMMANDS[name].params:
        if parameter.param_type_name == "argument":
            assert any(re.match(rf"  {parameter.metavar} ", line) for line in groups["Arguments"])
            continue
        if parameter.name == "help":
            continue
        assert parameter.rich_help_panel in GROUPS
        named = [line for line in groups[parameter.rich_help_panel] if re.search(rf"{parameter.opts[0]}\b", line[:24])]
        assert named, parameter.opts
        assert "Default: " in parameter.help or parameter.required, parameter.opts
        if parameter.metavar:
            assert re.search(r"such as|: (\w+[,;] )?or |: \w+; or |reported|grammar:300|validation", parameter.help), (
                parameter.opts
            )


@pytest.mark.parametrize("name", WRITTEN)
def test_the_help_says_what_is_written(helped, name: str) -> None:
    text = " ".join(helped(name, 80))
    assert not [file for file in WRITTEN[name] if file not in text]


SENTENCES = {
    "": "no command was given; there are atlas, explore, tune, measure, merge, compare, disable, lesions, "
    "ledger, align, probe, patterns, check, export, rerun, study and list, which `headscope --help` describes.",
    "atlsa": "there is no command 'atlsa'; there are atlas, explore, tune, measure, merge, compare, disable, lesions, "
    "ledger, align, probe, patterns, check, export, rerun, study and list, which `headscope --help` describes.",
    "list": "missing argument 'KIND'; see headscope list --help.",
    "list reducer": "KIND is 'reducer'; give reducers, corpora, studies or tasks.",
    "atlas --limit 0": "--limit is 0; give 1 or more.",
    "atlas --sample -3": "--sample is -3; give 1 or more.",
    "measure minilm grammar:7": "missing option '--reducer' / '-r'; see headscope measure --help.",
}


@pytest.mark.parametrize("columns", [40, 80])
@pytest.mark.parametrize("typed", SENTENCES)
def test_what_is_mistyped_is_one_sentence(run, monkeypatch, typed: str, columns: int) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    assert run(*typed.split()) == (2, "", f"headscope: {SENTENCES[typed]}\n")
