"""Lists of runs and manifests of which a part was replaced, left out or renamed."""

import json
import random
from pathlib import Path
from typing import Any

from headscope import runs
from headscope.commands.folder import OutputFolder
from headscope.commands.output import Contents
from headscope.errors import HeadscopeError
from mutations import check_sentence, damage, within

_VALUES: tuple[Any, ...] = (
    None, True, 0, -1, 3, 10**30, 10**400, float("nan"), float("inf"), 0.5, "", "x", ".", "..", "../x", "/etc", "a/b",
    "\x00", "\x1b[2J", "\ud83d", "\udc80", "a" * 300, "heads.nc", "figures", [], {}, [[]], {"a": {}}, ["x"], [None],
    "DEEP", "DIGITS",
)  # fmt: skip


def craft_json(value: Any, chance: random.Random) -> bytes:
    """A value in JSON, of which a part is replaced, left out or renamed; or its damaged text."""
    if chance.random() < 0.3:
        return damage(json.dumps(value), chance)
    value = json.loads(json.dumps(value))
    containers: list[Any] = [value]
    for container in containers:
        inner = container.values() if isinstance(container, dict) else container
        containers += [item for item in inner if isinstance(item, dict | list) and item]
    container = chance.choice(containers)
    key = chance.choice(list(container) if isinstance(container, dict) else range(len(container)))
    replacement = chance.choice(_VALUES)
    match chance.choice(("replace", "delete", "rename")):
        case "replace":
            container[key] = replacement
        case "rename" if isinstance(container, dict) and isinstance(replacement, str):
            container[replacement] = container.pop(key)
        case _:
            del container[key]
    text = json.dumps(value).replace('"DEEP"', "[" * 3000 + "]" * 3000).replace('"DIGITS"', "9" * 5000)
    return text.encode()


def write_runs(folder: Path) -> Path:
    """Write a folder with one run, and return the path of its list."""
    run = {"name": "seed-2", "seed": 2, "best_epoch": 1, "weights_sha256": "0" * 64}
    epochs = [{"validation": {"f1": 0.5}, "test": {"f1": 0.25, "accuracy": 0.75}}]
    stored = {
        "version": runs.VERSION, "task": "negation", "control": False, "model": "minilm", "weights_sha256": "1" * 64,
        "select": "validation", "metric": "f1", "settings": {"epochs": 1, "rate": 4e-5},
        "runs": [run | {"epochs": epochs}],
    }  # fmt: skip
    (folder / "seed-2").mkdir(parents=True, exist_ok=True)
    (folder / "seed-2" / "model.safetensors").write_bytes(b"weights")
    path = folder / runs.FILE
    path.write_text(json.dumps(stored))
    return path


def try_list(folder: Path, chance: random.Random) -> str:
    """Read a list of runs after a part of it was replaced: ``read`` or ``refused``."""
    path = write_runs(folder)
    path.write_bytes(craft_json(json.loads(path.read_text()), chance))
    try:
        with within():
            listed = runs.read(folder)
            # What is read can be written, compared and used as the name of a file.
            runs.write(listed)
            assert runs.read(folder) == listed
    except HeadscopeError as error:
        check_sentence(error)
        return "refused"
    return "read"


def try_manifest(folder: Path, chance: random.Random) -> str:
    """Write over a folder whose manifest was replaced in part: ``read``, or ``refused`` before anything is done.

    Raises:
        AssertionError: a file is gone that the manifest does not list as one of the folder's.
    """
    out = folder / "out"
    out.mkdir(parents=True, exist_ok=True)
    manifest = out / "manifest.json"
    crafted = craft_json({"about": {"seed": 1}, "sha256": {"heads.nc": "a" * 64, "figures/a.png": "b" * 64}}, chance)
    manifest.write_bytes(crafted)
    (out / f".{manifest.name}.pending").write_bytes(craft_json(["heads.nc", "atlas.html"], chance))
    (out / "atlas.html").unlink(missing_ok=True)
    others = [folder / "x.nc", folder / "heads.nc", out / "mine.txt"]
    for other in others:
        other.write_text("mine")
    job = OutputFolder(Contents("the atlas", manifest.name), out)
    try:
        with within():
            job.check()
    except HeadscopeError as error:
        check_sentence(error)
        assert manifest.read_bytes() == crafted
        return "refused"
    with within():
        job.write({"atlas.html": "page"}, {})
    assert all(other.read_text() == "mine" for other in others)
    return "read"
