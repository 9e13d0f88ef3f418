"""The modules of the page in one script: each once, behind what it imports, and nothing that only a module may say."""

import base64
import re
import zlib
from functools import reduce
from importlib import resources

import numpy as np

from headscope.view.page.packed import pack_bytes
from headscope.view.page.script import EXPORT, IMPORT, join_modules

MODULES = {
    path.name.removesuffix(".js"): path.read_text(encoding="utf-8")
    for path in resources.files("headscope.view.page").joinpath("scripts").iterdir()
}


def test_each_module_is_there_once_and_behind_what_it_imports() -> None:
    joined = join_modules("main")
    order = re.findall(r"^const (\w+)Module = ", joined, re.MULTILINE)
    assert sorted(order) == sorted(MODULES)
    for place, name in enumerate(order):
        imports = {match["module"] for match in IMPORT.finditer(MODULES[name])}
        assert imports <= {*order[:place]}
    assert order[-1] == "main"


def test_no_import_or_export_is_left() -> None:
    assert not re.search(r"^\s*(import|export)\b", join_modules("main"), re.MULTILINE)
    assert join_modules("main").startswith('"use strict";')


def pack_raw(content: bytes, **options: int) -> str:
    """As gzip with a header of ten bytes in base64, deflated in a given way."""
    packer = zlib.compressobj(wbits=31, **options)
    return base64.b64encode(packer.compress(content) + packer.flush()).decode()


def test_a_browser_without_decompression_unpacks_the_same_bytes(open_page) -> None:
    """All kinds of blocks (stored, fixed and own codes), all lengths and distances; zlib is the witness."""
    random = np.random.default_rng(3)
    contents = [
        b"", b"a", b"abc" * 300, bytes(1000), random.bytes(70_001), (random.bytes(4_000) + bytes(300)) * 12,
        bytes(random.integers(0, 5, 50_000, dtype=np.uint8)), "Gr\u00fc\u00dfe \U0001f600 ".encode() * 97,
    ]  # fmt: skip
    ways = [{"level": 0}, {"level": 1}, {"level": 9}, {"level": 9, "strategy": zlib.Z_FIXED}]
    packed = [pack_raw(content, **way) for content in contents for way in ways] + [*map(pack_bytes, contents)]
    wanted = [content for content in contents for _ in ways] + contents
    modules = join_modules("packed").removesuffix("})();\n")
    page = open_page("<!doctype html><title>bytes</title><p>bytes")
    read = page.evaluate(
        f"""async (packed) => {{
            delete window.DecompressionStream;
            {modules.replace("(async () => {", "return (async () => {", 1)}
            const all = await Promise.all(packed.map(packedModule.unpackBytes));
            return all.map((bytes) => [bytes.length, [...bytes].reduce((sum, byte) => (31 * sum + byte) % 1000003, 7)]);
            }})();
        }}""",
        packed,
    )
    assert read == [
        [len(content), reduce(lambda total, byte: (31 * total + byte) % 1000003, content, 7)] for content in wanted
    ]


def test_packed_data_that_end_too_early_are_an_error(open_page) -> None:
    page = open_page("<!doctype html><title>bytes</title><p>bytes")
    text = (
        join_modules("inflate").removesuffix("})();\n").replace("(async () => {", "return (async () => {", 1)
        + "try { inflateModule.inflate(new Uint8Array(bytes)); } catch (error) { return error.message; } })();"
    )
    cut = list(zlib.compress(bytes(range(256)) * 4, wbits=-15)[:-9])
    assert page.evaluate(f"async (bytes) => {{ {text} }}", cut) == "the packed data end too early"


def test_what_is_imported_is_exported_and_used() -> None:
    for name, text in MODULES.items():
        for imported in IMPORT.finditer(text):
            exported = {match["name"] for match in EXPORT.finditer(MODULES[imported["module"]])}
            for each in imported["names"].split(", "):
                assert each in exported, f"{name}: {each}"
                assert len(re.findall(rf"\b{each}\b", text)) > 1, f"{name}: {each} is not used"


def test_names_enter_the_page_as_text_alone() -> None:
    for name, text in MODULES.items():
        assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\b", text), name
