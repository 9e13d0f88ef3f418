"""What a command does in its first second: it answers, refuses, or says that it is loading."""

import gc
import json
import subprocess
import sys
from pathlib import Path

import pytest

import tiny
from headscope.commands.list import run as listing

# What is answered, or refused, before anything has to be measured; the code with which the command ends.
QUICK_COMMANDS = {
    "": 0,
    "help": 0,
    "help atlas": 0,
    "--help": 0,
    "--version": 0,
    "atlsa": 2,
    "atlas --help": 0,
    "atlas --help-all": 0,
    "atlas --limt 3": 2,
    "atlas minlm": 2,
    "atlas ./tst": 2,
    "atlas minilm gramar:50": 2,
    "explore minlm": 2,
    "list": 0,
    "list reducers": 0,
    "list corpora": 0,
    "list studies": 0,
    "list tasks": 0,
    "list reducer": 2,
    "measure minilm grammar:7 -r gaze": 2,
    "measure minilm grammar:7": 2,
    "atlas minilm grammar:7 -r gaze": 2,
    "study clark2018": 2,
    "study clark2018 --recorded .": 2,
    "study clark2019 --recorded . --seeds 3": 2,
    "study clark2019 --model ./nowhere": 2,
    "study clark2019 --corpus treebank": 2,
    "study clark2019 --corpus treebank=a.conllu --corpus treebank=b.conllu": 2,
    "tune nothing minilm": 2,
    "tune negation ./nowhere": 2,
    "tune negation minilm --data ./nowhere": 2,
    "tune negation minilm --data grammar:7 -o README.md": 2,
    "tune negation minilm --epochs 0": 2,
    "tune negation minilm --seed 3 --seed 3": 2,
    "measure minilm ./nothing.conllu -r surface": 2,
    "measure minilm grammar:7 -r surface --replicate ./nothing.conllu": 2,
    "measure minilm grammar:7 -r surface --patterns ./nothing.json": 2,
    "measure minilm grammar:7 -r surface --patterns README.md": 2,
    "measure minilm grammar:7 -r surface --runs ./nowhere": 2,
    "measure minilm grammar:7 -r surface --runs . --replicate grammar:7:5": 2,
    "measure minilm grammar:7 -r surface -o docs": 2,
    "measure minilm README.md -r surface --format conllx": 2,
    "measure ./nowhere grammar:7 -r surface": 2,
    "measure ./nowhere.gguf grammar:7 -r surface": 2,
    "measure minilm grammar:7 -r surface --limit 0": 2,
    "measure minilm grammar:7 -r surface --max-tokens 2": 2,
    "atlas /nowhere": 2,
    "atlas --limit 3 --sample 3": 2,
    "atlas --sample 0": 2,
    "atlas --sample -3": 2,
    "atlas --patterns ./nothing.json": 2,
    "disable ./nowhere mrpc": 2,
    "disable minilm mrpc --how gently": 2,
    "disable minilm mrpc --placebos 1": 2,
    "disable minilm mrpc --limit 1": 2,
    "disable minilm mrpc --pairs 1": 2,
    "disable minilm mrpc --top 1": 2,
    "disable minilm mrpc --how zero --how zero": 2,
    "probe minilm grammar:7 --links kinship": 2,
    "probe minilm grammar:7 --decode beam": 2,
    "probe minilm grammar:7 --seeds 0": 2,
    "probe minilm grammar:7 --without words": 2,
    "probe ./nowhere grammar:7": 2,
    "probe minilm ./nothing.conllu": 2,
    "compare a.nc b.nc --other-before c.nc": 2,
}
SLOW = ("torch", "transformers", "matplotlib", "pandas", "scipy", "seaborn", "xarray")

# What is refused with the help of some of these, but before torch is loaded.
REFUSED_WITHOUT_TORCH = (
    "disable minilm mrpc -o README.md",
    "disable minilm mrpc --data ./nowhere",
    "disable minilm ./nothing.txt",
    "probe minilm grammar:7 -o README.md",
    "atlas -o README.md",
    "compare ./nothing.nc ./nothing.nc",
    "compare README.md README.md",
    "compare a.nc b.nc -o README.md",
    "study clark2019 -o README.md",
    "study zhao2020 --data ./nowhere",
    "study clark2019 --select test",
    "study clark2019 --seeds 3",
    "study clark2019 --corpus story=README.md",
    "study clark2019 --corpus treebank=./nothing --corpus coreference=./nothing --corpus text=./nothing",
)

TYPE = """
import contextlib, io, json, sys
from headscope import cli
for command in json.loads(sys.argv.pop()):
    sys.argv = ["headscope", *command.split()]
    code, complaint = 0, io.StringIO()
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(complaint):
        try:
            cli.main()
        except SystemExit as ended:
            code = ended.code or 0
        except ImportError:
            code = "import"
    print(json.dumps([command, code, complaint.getvalue().splitlines(), [*sys.modules]]))
"""
"""A program that types commands, one after the other, and says after each what it printed and what is loaded."""

NO_TORCH = """
import sys
class NoTorch:
    def find_spec(self, name, *_):
        if name == "torch":
            raise ImportError(name)
sys.meta_path.insert(0, NoTorch())
"""
"""Begins a program in which torch cannot be imported."""


def type_in_a_new_process(commands: list[str], before: str = "") -> list[tuple[str, int | str, list[str], set[str]]]:
    """For each command its exit code, its lines on standard error, and the slow modules that are loaded after it."""
    program = [sys.executable, "-c", before + TYPE, json.dumps(commands)]
    process = subprocess.run(program, capture_output=True, text=True, cwd=Path(__file__).parents[1])
    assert process.returncode == 0, process.stderr
    answers = [json.loads(line) for line in process.stdout.splitlines()]
    return [(command, code, lines, {*modules} & {*SLOW}) for command, code, lines, modules in answers]


def test_what_measures_nothing_loads_nothing_that_takes_seconds() -> None:
    answers = type_in_a_new_process([*QUICK_COMMANDS])
    assert {command: code for command, code, *_ in answers} == QUICK_COMMANDS
    # In one process: the first command that has loaded something is the one to mend.
    assert not [(command, loaded) for command, _, _, loaded in answers if loaded]
    for command, code, lines, _ in answers:
        steps = ["reading negation ..."] if "--data" in command and "-o" not in command else []
        assert lines[:-1] == steps, command
        assert [line[:11] for line in lines[-1:]] == ["headscope: "] * (code == 2), command


SUGGESTED = {
    "atlas minlm": "minilm",
    "atlas smolm2": "smollm2",
    "explore minlm": "minilm",
    "tune negation minlm": "minilm",
    "atlas ./tets": "tests",
    "atlas minilm gramar:50": "grammar:50",
    "atlas minilm repeat:7:3": "repeats:7:3",
    "atlas minilm README.dm": "README.md",
    "atlas minilm test/corpora": "tests/corpora",
    "measure minilm grammar:7 -r surfaces": "surface",
    "measure minilm grammar:7 -r surfaces:offsets=2": "surface:offsets=2",
    "measure minilm README.md -r surface --format conllux": "conllu",
    "measure minilm grammar:7 -r surface --text spced": "spaced",
    "study clarke2019": "clark2019",
    "tune negations minilm": "negation",
    "compare README.dm README.md": "README.md",
}
"""What is misspelt, and what stands in the sentence."""


def test_what_is_misspelt_is_answered_with_what_is_there_before_torch_is_loaded() -> None:
    answers = type_in_a_new_process([*SUGGESTED])
    for command, code, lines, loaded in answers:
        assert (code, loaded & {"torch", "transformers"}) == (2, set()), command
        assert f" (did you mean {SUGGESTED[command]}?)" in lines[-1], (command, lines)


def test_what_is_wrong_with_files_and_folders_is_said_before_torch_is_loaded() -> None:
    answers = type_in_a_new_process([*REFUSED_WITHOUT_TORCH])
    for command, code, lines, loaded in answers:
        assert (code, lines[-1][:11], loaded & {"torch", "transformers"}) == (2, "headscope: ", set()), command


UNUSED = (
    "datasets", "IPython", "matplotlib", "networkx", "nltk", "peft", "ray", "scipy.cluster", "scipy.stats", "seaborn",
    "sklearn", "spacy", "statsmodels",
)  # fmt: skip
"""Packages that a measurement does without, though they are installed."""


@pytest.mark.full
def test_a_measurement_loads_only_what_it_needs(tmp_path: Path) -> None:
    measure = "headscope.measure(sys.argv[1], 'grammar:7', ['surface', 'relations'], progress=False)"
    program = f"import json, sys, headscope; {measure}; print(json.dumps([*sys.modules]))"
    arguments = [sys.executable, "-c", program, str(tiny.save(tmp_path / "model"))]
    process = subprocess.run(arguments, capture_output=True, text=True)
    assert process.returncode == 0, process.stderr
    assert not {*UNUSED} & {*json.loads(process.stdout)}


def test_torch_would_be_noticed() -> None:
    ((_, _, _, loaded),) = type_in_a_new_process(["--help"], before="import torch")
    assert "torch" in loaded


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    path = tmp_path / "own.conllu"
    path.write_text("1\tdogs\t_\tNOUN\t_\t_\t2\tnsubj\t_\t_\n2\tbark\t_\tVERB\t_\t_\t0\troot\t_\t_\n\n")
    return path


def test_a_command_says_that_it_is_loading_before_torch_is_loaded(corpus: Path) -> None:
    given = " ".join(f"--corpus {table}={corpus}" for table in ("treebank", "coreference", "text"))
    commands = {
        f"atlas minilm {corpus}": ["loading PyTorch ..."],
        f"measure minilm {corpus} -r surface": ["loading PyTorch ..."],
        f"study clark2019 {given}": ["loading matplotlib ...", "loading PyTorch ..."],
        "tune negation minilm --data grammar:211": ["reading negation ...", "loading PyTorch ..."],
    }
    answers = type_in_a_new_process([*commands], before=NO_TORCH)
    assert {command: lines for command, _, lines, _ in answers} == commands
    assert {code for _, code, *_ in answers} == {"import"}


def test_a_command_looks_for_garbage_rarely_and_a_process_that_calls_it_as_before(run, monkeypatch) -> None:
    within: list[tuple[int, int, int]] = []
    young, middle, old = gc.get_threshold()
    monkeypatch.setattr(listing, "run", lambda request, progress: within.append(gc.get_threshold()) or {})
    run("list", "studies")
    assert within == [(young, middle, 100 * old)]
    assert gc.get_threshold() == (young, middle, old)
