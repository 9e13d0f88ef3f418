"""Write the notebook of the tutorial, ``docs/tutorial.ipynb``: ``python tools/make_notebook.py``.

docs/tutorial.md --prose, what fetches files, what is printed--> cells of text
                 --Python, commands as calls of Python--> cells of code
"""

import json
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from headscope.cli.command_list import COMMANDS
from headscope.commands.option import ARGUMENTS, Option, spell_name
from headscope.commands.record import order_fields

DOCS = Path(__file__).parents[1] / "docs"
PAGE, NOTEBOOK = DOCS / "tutorial.md", DOCS / "tutorial.ipynb"
FIRST = "import headscope"


def main() -> None:
    """Write the notebook, without outputs."""
    NOTEBOOK.write_text(write_notebook(PAGE.read_text(encoding="utf-8")), encoding="utf-8")


def write_notebook(page: str) -> str:
    """Return the notebook of a page, as JSON."""
    cells = [make_cell(number, kind, text) for number, (kind, text) in enumerate(split_page(page), start=1)]
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    about = {"kernelspec": kernel, "language_info": {"name": "python"}}
    notebook = {"cells": cells, "metadata": about, "nbformat": 4, "nbformat_minor": 5}
    return json.dumps(notebook, indent=1, ensure_ascii=False) + "\n"


def make_cell(number: int, kind: str, text: str) -> dict[str, Any]:
    """Return a cell of text or of code."""
    outputs = {"execution_count": None, "outputs": []} if kind == "code" else {}
    return {
        "cell_type": kind, "id": f"cell-{number}", "metadata": {}, **outputs, "source": text.splitlines(keepends=True),
    }  # fmt: skip


def split_page(page: str) -> Iterator[tuple[str, str]]:
    """Yield the kind and the text of each cell."""
    prose, begun = "", False
    for part in re.split(r"(^```\w+\n.*?^```\n)", page, flags=re.DOTALL | re.MULTILINE):
        code = translate_block(part)
        if code is None:
            prose += part
            continue
        if prose.strip():
            yield "markdown", prose.strip()
        prose = ""
        yield "code", code if begun or FIRST in code.splitlines() else f"{FIRST}\n\n{code}"
        begun = True
    if prose.strip():
        yield "markdown", prose.strip()


def translate_block(part: str) -> str | None:
    """Return the Python of a block of code; None for prose, for what is printed, and for what fetches files."""
    fenced = re.fullmatch(r"```(\w+)\n(.*?)```\n", part, flags=re.DOTALL)
    if fenced is None or fenced[1] not in ("python", "sh"):
        return None
    if fenced[1] == "python":
        return fenced[2].strip()
    lines = fenced[2].splitlines()
    return "\n".join(map(translate_command, lines)) if all(line.startswith("headscope ") for line in lines) else None


def translate_command(line: str) -> str:
    """Return the call of Python that does what a command does.

    Raises:
        ValueError: it has an option that is none of the command.
    """
    _, command, *typed = shlex.split(line)
    (record,) = (each for each in COMMANDS if each.command == command)
    options: dict[str, Option] = {each.name: record.options[each.name] for each in order_fields(record)}
    places = [name for name, each in options.items() if each.group == ARGUMENTS]
    spelt = {
        text: (name, place == 0)
        for name, each in options.items()
        for spelling in each.names or (spell_name(name, each),)
        for place, text in enumerate(spelling.split("/"))
    }
    values: dict[str, list[str] | bool] = {}
    while typed:
        text = typed.pop(0)
        if text.startswith("-") and text not in spelt:
            raise ValueError(f"{command} has no option {text}")
        name, is_set = spelt[text] if text.startswith("-") else (places.pop(0), True)
        if options[name].typed is bool:
            values[name] = is_set
        else:
            values.setdefault(name, []).append(typed.pop(0) if text.startswith("-") else text)
    arguments = [
        f"{name}={spell_value(options[name], value)}" for name, value in values.items() if options[name].in_python
    ]
    first = [text.partition("=")[2] for text in arguments if options[text.partition("=")[0]].group == ARGUMENTS]
    rest = [text for text in arguments if options[text.partition("=")[0]].group != ARGUMENTS]
    return f"headscope.{record.function}({', '.join([*first, *rest])})"


def spell_value(option: Option, value: list[str] | bool) -> str:
    """Return a value as Python writes it."""
    if isinstance(value, bool):
        return str(value)
    plain = [text if option.typed in (int, float) else json.dumps(text, ensure_ascii=False) for text in value]
    return plain[0] if len(plain) == 1 else f"[{', '.join(plain)}]"


if __name__ == "__main__":
    main()
