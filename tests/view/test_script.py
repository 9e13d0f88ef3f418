"""The modules of the page in one script: each once, behind what it imports, and nothing that only a module may say."""

import re
from functools import reduce
from importlib import resources

import numpy as np
import pytest

from headscope.view.page import render_page
from headscope.view.page.packed import pack_bytes
from headscope.view.page.script import EXPORT, IMPORT, join_modules
from view.tables import head_table

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


@pytest.mark.parametrize("quick", [False, True])
def test_the_page_unpacks_the_same_bytes(open_page, quick: bool) -> None:
    random = np.random.default_rng(3)
    plain, mixed = [b"", b"a", b"abc" * 300, bytes(1000)], (random.bytes(4_000) + bytes(300)) * 12
    few, text = bytes(random.integers(0, 5, 50_000, dtype=np.uint8)), "Gr\u00fc\u00dfe \U0001f600 ".encode() * 97
    contents = [*plain, random.bytes(70_001), mixed, few, text]
    modules = join_modules("packed").removesuffix("})();\n").replace("(async () => {", "return (async () => {", 1)
    page = open_page("<!doctype html><title>bytes</title><p>bytes")
    read = page.evaluate(
        f"""async (packed) => {{
            {modules}
            const all = await Promise.all(packed.map(packedModule.unpackBytes));
            return all.map((bytes) => [bytes.length, [...bytes].reduce((sum, byte) => (31 * sum + byte) % 1000003, 7)]);
            }})();
        }}""",
        [pack_bytes(content, quick=quick) for content in contents],
    )
    assert read == [
        [len(content), reduce(lambda total, byte: (31 * total + byte) % 1000003, content, 7)] for content in contents
    ]


def test_a_browser_that_cannot_unpack_says_so_and_shows_what_needs_no_numbers(open_page, complaints) -> None:
    text = render_page(head_table(), figures={"One": "<svg xmlns='http://www.w3.org/2000/svg'/>"})
    page = open_page(text, first="delete window.DecompressionStream")
    sentence = (
        "This browser is too old to unpack the numbers of this page, from which the grid of heads is drawn. Open "
        "the page in a browser of June 2023 or later; the parts below can be read in any browser."
    )
    assert complaints == [sentence]
    complaints.clear()
    assert page.get_by_text(sentence).is_visible()
    seen = {heading.inner_text() for heading in page.locator("h2").all() if heading.is_visible()}
    assert seen == {"Reported heads", "Figures", "Where this comes from"}
    assert page.locator("#search, form, button").locator("visible=true").count() == 0
    assert page.locator("#reported-rows tbody tr").first.is_visible()


def test_other_browsers_do_not_see_that_sentence(open_page) -> None:
    assert open_page(render_page(head_table(), figures={})).locator("#too-old").is_hidden()


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
