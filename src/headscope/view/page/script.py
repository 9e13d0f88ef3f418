"""The script of the page: all JavaScript modules in one text, since a single file cannot load other files.

Each module becomes a function that runs once and returns the module's exports; an import takes values from this result.
Modules import with ``import { a, b } from "./other.js";`` and put ``export`` before a ``const`` or a function. They may
use ``await`` outside of functions.
"""

import re
from importlib import resources

IMPORT = re.compile(r'^import \{ (?P<names>[\w, ]+) \} from "\./(?P<module>\w+)\.js";$', re.MULTILINE)
EXPORT = re.compile(r"^export (?=(?:const|function|async function) (?P<name>\w+))", re.MULTILINE)


def join_modules(main: str) -> str:
    """Return a script with the text of a module after the texts of all modules that it imports."""
    modules: dict[str, str] = {}
    _collect(main, modules)
    return "".join(['"use strict";\n(async () => {\n', *modules.values(), "})();\n"])


def _collect(name: str, modules: dict[str, str]) -> None:
    """Add the text of a module to `modules`, after the texts of the modules that it imports."""
    text = resources.files("headscope.view.page").joinpath(f"scripts/{name}.js").read_text(encoding="utf-8")
    for imported in IMPORT.finditer(text):
        if imported["module"] not in modules:
            _collect(imported["module"], modules)
    exported = ", ".join(match["name"] for match in EXPORT.finditer(text))
    body = EXPORT.sub("", IMPORT.sub(r"const { \g<names> } = \g<module>Module;", text))
    modules[name] = f"const {name}Module = await (async () => {{\n{body}return {{ {exported} }};\n}})();\n"
