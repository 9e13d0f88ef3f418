"""The help of every command: complete, in groups, and readable on a narrow terminal."""

import re
from importlib import metadata

import pytest
import typer.main

from headscope import cli
from headscope.cli.command_list import COMMANDS as LIST
from headscope.commands.option import ARGUMENTS
from headscope.commands.option import GROUPS as ALL_GROUPS
from headscope.view.glosses import TERMS

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
    """The help of a command, with all options if there are more, on a terminal with so many columns, as lines."""

    def show(name: str, columns: int, option: str = "") -> list[str]:
        monkeypatch.setenv("COLUMNS", str(columns))
        code, printed, complaint = run(*name.split(), option or ("--help-all" if name else "--help"))
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


@pytest.mark.parametrize("name", COMMANDS)
def test_the_short_help_has_the_arguments_and_the_few_options_that_are_basic(helped, name: str) -> None:
    described = next(record.options for record in LIST if record.command == name)
    lines = helped(name, 80, "--help")
    lines = lines[lines.index("Arguments") :]
    options = {}
    for parameter in COMMANDS[name].params:
        is_option = parameter.param_type_name == "option"
        written = min(parameter.opts, key=len) if is_option else parameter.metavar
        basic = described[parameter.name].basic or parameter.required or not is_option
        assert any(re.match(rf"  {re.escape(written)}[ ,]", line) for line in lines) == basic, written
        options |= {written: basic} if is_option else {}
    assert sum(options.values()) <= 7
    further = len(options) - sum(options.values())
    mentions = [" ".join(line.split()) for line in lines if "--help-all" in line]
    assert mentions == [f"--help-all Show {further} further option{'s' * (further > 1)} as well."] * (further > 0)
    assert "Examples" in lines


@pytest.mark.parametrize(
    ("typed", "same"),
    [("", "--help"), ("help", "--help"), ("help atlas", "atlas --help"), ("help help list", "list --help")],
)
def test_help_is_given_as_one_asks_for_it(run, typed: str, same: str) -> None:
    expected = run(*same.split())
    assert (expected[0], expected[1][:7], expected[2]) == (0, "Usage: ", "")
    assert run(*typed.split()) == expected


@pytest.mark.parametrize("term", [term.replace("_", " ") for term in TERMS])
def test_help_explains_the_words_of_the_results(run, term: str) -> None:
    code, printed, complaint = run("help", *term.split())
    assert (code, " ".join(printed.split()), complaint) == (0, TERMS.get(term, TERMS.get(term.replace(" ", "_"))), "")


def test_the_version_is_that_of_the_package(run) -> None:
    assert run("--version") == (0, f"headscope {metadata.version('headscope')}\n", "")


@pytest.mark.parametrize("name", WRITTEN)
def test_the_help_says_what_is_written(helped, name: str) -> None:
    text = " ".join(helped(name, 80))
    assert not [file for file in WRITTEN[name] if file not in text]


THERE = (
    "there are atlas, profile, explore, draw, tune, measure, merge, compare, disable, lesions, ledger, align, probe, "
    "patterns, check, export, rerun, study and list, which `headscope --help` describes."
)
SENTENCES = {
    "atlsa": f"there is no command 'atlsa' (did you mean atlas?); {THERE}",
    "colours": f"there is no command 'colours'; {THERE}",
    "help meaure": f"there is no command 'meaure' (did you mean measure?); {THERE}",
    "list reducer": "KIND is 'reducer' (did you mean reducers?); give reducers, corpora, studies or tasks.",
    "atlas --limt 3": "there is no option --limt (did you mean --limit?); see headscope atlas --help-all.",
    "--verson": "there is no option --verson (did you mean --version?); see headscope --help.",
    "atlas --colour red": "there is no option --colour; see headscope atlas --help-all.",
    "atlas --text writen": "--text is 'writen' (did you mean written?); give written or spaced.",
    "atlas --limit 0": "--limit is 0; give 1 or more.",
    "atlas --sample -3": "--sample is -3; give 1 or more.",
    "measure minilm grammar:7": "missing option '--reducer' / '-r'; see headscope measure --help.",
}


@pytest.mark.parametrize("columns", [40, 80])
@pytest.mark.parametrize("typed", SENTENCES)
def test_what_is_mistyped_is_one_sentence(run, monkeypatch, typed: str, columns: int) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    assert run(*typed.split()) == (2, "", f"headscope: {SENTENCES[typed]}\n")
