"""The modules of the page in one script: each once, behind what it imports, and nothing that only a module may say."""

import re
from importlib import resources

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
