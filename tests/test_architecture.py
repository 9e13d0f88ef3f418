"""The house rules that a machine can hold."""

import ast
import dataclasses
import importlib
import inspect
import pkgutil
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

import headscope
import witnesses
from headscope.commands.record import Options, Request
from headscope.reducers import REDUCERS, Reducer, reducer_names
from headscope.studies import STUDIES, study_names

TESTS = Path(__file__).parent
SOURCE, TOOLS = TESTS.parent / "src", TESTS.parent / "tools"
FILES = sorted(path for folder in (SOURCE, TESTS, TOOLS) for path in folder.rglob("*.py"))
PACKAGE = SOURCE / "headscope"
LINES = 400
DRAWERS = {"utils", "util", "helpers", "helper", "misc", "common"}

# Each file or folder of the package imports only from those before it.
CHAINS = (
    "errors files guards netcdf layers own_files predictions results text_forms heads corpora capture reducers runner "
    "learn studies commands cli",
    "errors files guards score runs examples headlists analyse view studies commands cli",
    "errors first_guesses guards identity heads score capture reducers runner intervene attention_maps commands cli",
)
# Names that say neither what is done nor what it is.
NO_NAMES = set("found one told made of spoken called counted another more such said asked taken".split())
SCORES = (
    "(?:relation|antecedent|aspect)_accuracy|scope_(?:precision|recall|f1)|role_weight|token_class_attention|"
    "class_share|fold_(?:correct|link|antecedent|scope|aspect|role)\\w*"
)

# A command that is about one statistic and no other.
OF_ONE_REDUCER = {"commands/align/run.py": {"WordAlignment"}}

# What loads no torch; import-linter's contract is about the first.
WITHOUT_TORCH = ("analyse", "corpora", "examples", "headlists", "heads", "identity", "layers", "runs", "score", "view")
FURTHER_WITHOUT_TORCH = ("errors", "files", "guards", "netcdf", "own_files", "studies", "view.figures", "view.page")

# What opens a file of a format, or a file as a whole, by its full name; `guards` and `netcdf` alone do.
OPENERS = re.compile(
    r"numpy\.(load|memmap|fromfile|loadtxt|genfromtxt)|(h5py|h5netcdf)\.File|xarray\.(open|load)_\w+|torch\.load|open|"
    r"(gzip|bz2|lzma|io)\.(open|\w+File)|(zipfile|tarfile|pickle|marshal|shelve|joblib)\.\w+|pandas\.read_\w+|json\.load|"
    r"safetensors\.(safe_open|\w+\.load_file)|gguf\.GGUFReader|.*\.(read_bytes|read_text)|.*\.open\(('rb?'|'rt')?\)"
)
OPENING = {
    "files.py": {"path.open('rb')"},  # in `reading`, which the others use
    "commands/atlas/atlas_result.py": {
        "(self.folder / PAGE).read_text",
        "(path.parent / FIGURES / f'{name}.svg').read_text",
    },
    "runner/ray.py": {"path.read_bytes", "self.work.open()"},  # what this very process has written, and a run
}

# What else the terminal needs.
PRINTERS: dict[str, set[str]] = {"terminal.py": {"view"}}


def in_a_new_process(code: str) -> str:
    """The output of some code, run by a Python that has imported nothing yet."""
    process = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert process.returncode == 0, process.stderr
    return process.stdout.strip()


def loads_torch(*modules: str) -> bool:
    return in_a_new_process(f"import sys, {', '.join(modules)}; print('torch' in sys.modules)") == "True"


def contract(beginning: str) -> dict[str, Any]:
    """The one contract of import-linter whose name begins so."""
    tools = tomllib.loads((TESTS.parent / "pyproject.toml").read_text())["tool"]
    (only,) = (contract for contract in tools["importlinter"]["contracts"] if contract["name"].startswith(beginning))
    return only


def test_what_does_not_need_torch_does_not_load_it() -> None:
    light = ["headscope", *(f"headscope.{name}" for name in (*WITHOUT_TORCH, *FURTHER_WITHOUT_TORCH))]
    # Together, since that is one new process and not ten; should it fail, each alone says which.
    assert not loads_torch(*light), [name for name in light if loads_torch(name)]


def test_import_linter_keeps_torch_away_from_the_same() -> None:
    assert set(contract("tables are analysed")["source_modules"]) == {f"headscope.{name}" for name in WITHOUT_TORCH}
    assert set(contract("tables are analysed")["forbidden_modules"]) >= {"torch", "transformers"}


def test_asking_for_the_light_names_does_not_load_torch_either() -> None:
    analysing = ("consistency", "add_intervals", "add_regression", "add_report")
    names = ("HeadscopeError", "Score", "read", "read_table", "write_table", "top_heads")
    asked = "[getattr(headscope, name) for name in {}], [getattr(headscope.analyse, name) for name in {}]"
    code = f"import sys, headscope; {asked}; print('torch' in sys.modules)"
    assert in_a_new_process(code.format(names, analysing)) == "False"


def test_extras_are_loaded_where_they_are_used_and_not_before() -> None:
    code = "import sys, headscope.cli, headscope.corpora; print({'nltk', 'spacy'} & set(sys.modules))"
    assert in_a_new_process(code) == "set()"


def test_the_names_that_are_said_without_torch_are_those_of_the_reducers_and_the_studies() -> None:
    first_lines = [(name, (reducer.__doc__ or "").splitlines()[0]) for name, reducer in REDUCERS.items()]
    assert list(reducer_names.NAMES.items()) == first_lines
    assert list(study_names.NAMES.items()) == [(name, study.title) for name, study in STUDIES.items()]


@pytest.mark.full
def test_torch_would_be_noticed() -> None:
    assert loads_torch("headscope.errors", "headscope.capture.model.model")


def test_one_file_knows_the_attention_interface_of_transformers() -> None:
    knowing = [path for path in SOURCE.rglob("*.py") if "AttentionInterface" in path.read_text(encoding="utf-8")]
    assert [path.relative_to(SOURCE).as_posix() for path in knowing] == ["headscope/capture/model/implementation.py"]


def test_no_file_is_a_drawer() -> None:
    files = [path.relative_to(SOURCE).with_suffix("") for path in FILES if path.is_relative_to(SOURCE)]
    assert files
    assert not [path for path in files if DRAWERS & {part.strip("_") for part in path.parts}]


def test_no_file_is_too_long_to_read() -> None:
    lines = {path.relative_to(TESTS.parent).as_posix(): path.read_text(encoding="utf-8").count("\n") for path in FILES}
    assert not {name: count for name, count in lines.items() if count > LINES}


def layers() -> list[set[str]]:
    """The files and folders of the package as import-linter has them, the lowest layer first."""
    assert contract("imports go")["exhaustive"]
    return [set(layer.split(" | ")) for layer in reversed(contract("imports go")["layers"])]


def test_the_layers_are_those_of_the_design() -> None:
    assert set().union(*layers()) <= set(" ".join(CHAINS).split())
    height = {name: i for i, layer in enumerate(layers()) for name in layer}
    for chain in CHAINS:
        names = [name for name in chain.split() if name in height]
        assert not [pair for pair in pairwise(names) if height[pair[0]] > height[pair[1]]]


def test_the_terminal_uses_commands_only() -> None:
    for path in sorted((PACKAGE / "cli").glob("*.py")):
        assert modules_of_ours(path) <= {"errors", "commands", "cli"} | PRINTERS.get(path.name, set()), path.name


def modules_of_ours(path: Path) -> set[str]:
    """The folders and files directly under the package that a file imports from."""
    imported: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            imported.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module == "headscope":
            imported.update(f"headscope.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            imported.add(node.module or "")
    return {name.split(".")[1] for name in imported if name.startswith("headscope.")}


def sources(*folders: str) -> dict[str, str]:
    """The text of every file in these folders of the package, by its path there."""
    suffixes = {".py", ".js", ".html", ".css"}
    paths = sorted(path for folder in folders for path in (PACKAGE / folder).rglob("*") if path.suffix in suffixes)
    return {path.relative_to(PACKAGE).as_posix(): path.read_text(encoding="utf-8") for path in paths}


def known_reducers(path: str, text: str) -> set[str]:
    """The reducers and scores that a file names in its code."""
    words = rf"{'|'.join(REDUCERS)}|{SCORES}"
    if not path.endswith(".py"):
        return set(re.findall(rf"[\"'`]({words})[\"'`]", text))
    nodes = list(ast.walk(ast.parse(text)))
    used = {node.id for node in nodes if isinstance(node, ast.Name)}
    strings = {node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)}
    return (used & {reducer.__name__ for reducer in REDUCERS.values()}) | {s for s in strings if re.fullmatch(words, s)}


def test_no_reducer_is_known_by_name_above_the_reducers() -> None:
    files = sources("runner", "analyse", "view", "commands")
    assert files
    known = {path: names for path, text in files.items() if (names := known_reducers(path, text))}
    assert known == OF_ONE_REDUCER


def test_a_reducer_that_is_known_would_be_noticed() -> None:
    code = "def relations(): return table['relation_accuracy'] if name == 'scope' else Aspects('of relations')"
    assert known_reducers("a.py", code) == {"relation_accuracy", "scope", "Aspects"}
    assert known_reducers("a.js", 'show("surface", "the surface")') == {"surface"}


def opened_by(text: str) -> set[str]:
    """What opens files in some code; files of the package itself do not count."""
    tree, full = ast.parse(text), dict[str, str]()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            full |= {alias.asname or alias.name: alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            full |= {alias.asname or alias.name: f"{node.module}.{alias.name}" for alias in node.names}
    names: set[str] = set()
    for call in (node for node in ast.walk(tree) if isinstance(node, ast.Call)):
        first, *rest = ast.unparse(call.func).split(".")
        name = ".".join([full.get(first, first), *rest])
        mode = f"{name}({', '.join(map(ast.unparse, call.args))})"
        if "files(" not in name and not name.startswith("headscope."):
            names |= {each for each in (name, mode) if OPENERS.fullmatch(each)}
    return names


def test_files_of_others_are_opened_by_guards_alone() -> None:
    opened = {path: names for path, text in sources("").items() if path.endswith(".py") and (names := opened_by(text))}
    guarded = {path for path in opened if path == "netcdf.py" or path.startswith("guards/")}
    assert guarded >= {"netcdf.py", "guards/archives.py", "guards/lines.py", "guards/tensors.py", "guards/gguf.py"}
    assert {path: names for path, names in opened.items() if path not in guarded} == OPENING


def test_a_file_that_is_opened_would_be_noticed() -> None:
    code = (
        "import numpy as np, gzip, h5py\nfrom safetensors import safe_open as door\n"
        "np.load(a), h5py.File(a), gzip.open(a), door(a), open(a), path.open(), path.open('wb'), path.read_text(),"
        "files(package).read_text(), text.load(a)"
    )
    openers = "numpy.load h5py.File gzip.open safetensors.safe_open open path.open() path.read_text"
    assert opened_by(code) == {*openers.split()}


def test_nothing_is_cached_for_a_whole_process() -> None:
    """Not by a function, nor by a name of a module; what an object keeps of itself ends with it."""
    cache = re.compile(r"^(?:@(?:functools\.)?(?:lru_)?cache\b|\w+\b.*= WeakKeyDictionary\()", re.MULTILINE)
    assert not [path for path, text in sources("").items() if cache.search(text)]


def bound_names(tree: ast.AST) -> set[str]:
    """Every name that a file gives: to variables, parameters, attributes, functions, classes and imports."""
    names: set[str] = set()
    for node in ast.walk(tree):
        match node:
            case ast.Name(ctx=ast.Store(), id=name) | ast.Attribute(ctx=ast.Store(), attr=name) | ast.arg(arg=name):
                names.add(name)
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
                names.add(name)
            case ast.alias(asname=str(name)) | ast.ExceptHandler(name=str(name)) | ast.MatchAs(name=str(name)):
                names.add(name)
    return names


def test_names_are_verbs_and_nouns() -> None:
    offenders = {
        path: names
        for path, text in sources("").items()
        if path.endswith(".py") and (names := {name.strip("_") for name in bound_names(ast.parse(text))} & NO_NAMES)
    }
    assert not offenders


def test_a_name_that_says_nothing_would_be_noticed() -> None:
    code = "def told(of, *, more):\n    for one in found: self.made = [such for such in one]\nimport a as called"
    assert bound_names(ast.parse(code)) >= {"told", "of", "more", "one", "made", "such", "called"}


@cache
def classes() -> frozenset[type]:
    """All classes of headscope, private ones too."""
    pytest.importorskip("ray", reason="Ray is not installed, which one of the modules imports; see the extra `ray`")
    return frozenset(_classes())


def _classes() -> Iterator[type]:
    for module in pkgutil.walk_packages(headscope.__path__, "headscope."):
        for _, kind in inspect.getmembers(importlib.import_module(module.name), inspect.isclass):
            if is_ours(kind):
                yield kind


def is_ours(kind: type) -> bool:
    return kind.__module__.split(".")[0] == "headscope"


def depth(kind: type) -> int:
    """The number of our own classes above a class."""
    return sum(is_ours(above) for above in kind.__mro__[1:])


def test_classes_are_found_wherever_they_are() -> None:
    names = {kind.__name__ for kind in classes()}
    assert {"Model", "Document", "Links", "Reducer", "TableError", "Ratio"} <= names


def without_requests() -> set[type]:
    """All classes but requests, which are composed of groups of options by inheritance."""
    return {kind for kind in classes() if not issubclass(kind, Options)}


def test_nothing_inherits_from_what_inherits() -> None:
    assert not [kind for kind in without_requests() if depth(kind) > 1]


def test_requests_inherit_from_groups_of_options_alone() -> None:
    requests = {kind for kind in classes() if issubclass(kind, Request) and kind is not Request}
    assert requests
    for kind in requests:
        assert not [above for above in kind.__mro__[1:] if is_ours(above) and not issubclass(above, Options)]
        extended = {above for above in kind.__mro__[1:] if above in requests}
        assert {above.__name__ for above in extended} <= {kind.__name__.removeprefix("Typed")}  # only on the terminal


def test_only_errors_protocols_and_abstract_classes_are_inherited_from() -> None:
    parents = {above for kind in without_requests() for above in kind.__mro__[1:] if is_ours(above)}
    concrete = {kind for kind in parents if not getattr(kind, "_is_protocol", False)} - {Reducer}
    assert not [parent for parent in concrete if not issubclass(parent, Exception)]


def test_depth_would_be_noticed() -> None:
    parent = type("Parent", (), {"__module__": "headscope.made_up"})
    child = type("Child", (parent,), {"__module__": "headscope.made_up"})
    grandchild = type("Grandchild", (child,), {"__module__": "headscope.x"})
    assert [depth(kind) for kind in (parent, child, grandchild)] == [0, 1, 2]


@pytest.mark.parametrize("name", REDUCERS)
def test_a_reducer_is_a_frozen_dataclass(name: str) -> None:
    reducer = REDUCERS[name]
    assert dataclasses.is_dataclass(reducer)
    assert reducer.__dataclass_params__.frozen
    assert reducer.name == name


@pytest.mark.parametrize("name", REDUCERS)
def test_a_reducer_has_a_witness(name: str) -> None:
    witness = getattr(witnesses, name, None)
    assert inspect.isfunction(witness)
    assert Path(inspect.getfile(witness)) == TESTS / "witnesses" / f"{name}.py"


def imports_of_ours(text: str) -> set[str]:
    lines = [line.strip() for line in text.splitlines()]
    return {line for line in lines if line.startswith(("import ", "from ")) and "headscope" in line}


def test_witnesses_are_not_ours() -> None:
    files = sorted((TESTS / "witnesses").glob("**/*.py"))
    assert len(files) > len(REDUCERS)
    for path in files:
        ours = imports_of_ours(path.read_text(encoding="utf-8"))
        assert ours <= {"from headscope.corpora.document import Document"}, path


def test_a_witness_of_ours_would_be_noticed() -> None:
    text = "import numpy\n\ndef f():\n    from headscope import heads\n    import headscope.reducers as m\n"
    assert imports_of_ours(text) == {"from headscope import heads", "import headscope.reducers as m"}
