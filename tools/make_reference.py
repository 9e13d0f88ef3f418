"""Write the pages of the reference from the code: ``python tools/make_reference.py``.

They are written to ``docs/reference``, which is not in the repository. The page of variables measures the tests' tiny
models, for which it needs no network.
"""

import argparse
import ast
import dataclasses
import inspect
import re
import sys
import tempfile
from collections.abc import Iterator, Mapping
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import typer.main
import xarray as xr

import headscope
from headscope import analyse, cli, heads
from headscope.cli.commands import HELP_ALL
from headscope.corpora import FORMATS, summarize
from headscope.learn.tasks import TASKS
from headscope.reducers import REDUCERS, Relations, Rule, Surface, WordClass
from headscope.reducers.support.permutations import with_permutations
from headscope.runner import measure
from headscope.score import read_scores
from headscope.studies import STUDIES

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
import headed
import rivals
import tiny
import tiny_pairs
from analyse.run_tables import simulate
from plain_reducers import OF_TRANSLATIONS

FOLDER = Path(__file__).parents[1] / "docs" / "reference"

WIDTH = 100
"""Columns of a help text."""

MODULES: Mapping[str, tuple[str, ...]] = {
    "headscope.commands.atlas.atlas_result": ("AtlasResult",),
    "headscope.commands.check.run": ("CheckResult",),
    "headscope.commands.compare.run": ("ComparisonResult",),
    "headscope.commands.study.study_result": ("RecordedResult", "StudyResult"),
    "headscope.corpora": (),
    "headscope.score": ("Score", "find_score", "main_score", "read_scores"),
    "headscope.reducers": ("Reducer", "Annotation", "Rule", "WordClass"),
    "headscope.reducers.support.folds": ("FoldAssignment",),
    "headscope.reducers.support.permutations": ("Permutations",),
    "headscope.reducers.support.ratios": ("score_table",),
    "headscope.learn": (),
    "headscope.capture": (),
    "headscope.capture.forward.outputs": ("Outputs",),
    "headscope.capture.forward.loss": ("check_loss", "make_loss"),
    "headscope.capture.forward.head_edit": ("Edit", "EditedLayer", "HeadGradient"),
    "headscope.capture.passes.stream": ("Portion",),
    "headscope.runner": ("measure",),
    "headscope.intervene.likelihood": ("Likelihood", "compute_accuracy", "compute_likelihoods", "score_minimal_pairs"),
    "headscope.heads": ("head_name", "parse_head"),
    "headscope.headlists": (),
    "headscope.runs": ("Run", "Runs", "read", "selectivity"),
    "headscope.analyse": (),
    "headscope.view.figures": (),
    "headscope.view.figures.draw_heatmaps": ("draw_consistency_heatmap", "draw_score_heatmap"),
    "headscope.view.figures.draw_layers": (
        "draw_distances",
        "draw_entropies",
        "draw_gradients",
        "draw_offsets",
        "draw_special_tokens",
    ),
    "headscope.view.figures.draw_reported": ("draw_reported_heads",),
    "headscope.view.figures.draw_lengths": ("draw_score_by_length",),
    "headscope.view.figures.draw_replication": ("draw_replication",),
    "headscope.view.figures.draw_changes": ("draw_baseline_scatter", "draw_change_heatmaps", "draw_layer_boxes"),
    "headscope.view.figures.draw_runs": ("draw_class_heatmaps", "draw_similarity_heatmap"),
    "headscope.view.table_frames": ("make_frames",),
    "headscope.view.page": (),
    "headscope.studies": (),
}
"""Modules and the names that are listed of each: all public ones, if none is given here."""

# ---------------------------------------------------------------- commands


def commands() -> str:
    """The help of every command, as plain text."""
    page = "# Commands\n\nWhat each command prints with `--help-all`.\n"
    group = typer.main.get_command(cli.app)
    for name, command in {"": group, **group.commands}.items():
        title = f"headscope {name}".strip()
        context = command.context_class(command, info_name=title, terminal_width=WIDTH, color=False)
        context.meta[HELP_ALL] = True
        page += f"\n## `{title}`\n\n```text\n{command.get_help(context).strip()}\n```\n"
    return page


# ------------------------------------------------------------------ Python


def python() -> str:
    """Every public function and class, with its signature and docstring."""
    page = (
        "# Python\n\nThe public names. Those of `headscope` itself are all that most scripts need, in groups: what "
        "looks at heads, measures them, tests them, and changes or compares models. The others are for who [writes a "
        "reducer](../own-reducer.md), [edits heads](../explanation/seam.md#edits-and-gradients) or draws figures. A "
        "head table is an ordinary `xarray.Dataset`. The built-in reducers are on a [page of their own]"
        "(reducers.md).\n"
    )
    described: set[int] = set()
    for group, names in read_groups():
        entries = [entry for name in names if (entry := describe(name, getattr(headscope, name), described))]
        page += f"\n## `headscope`: {group}\n\n" + "\n".join(entries)
    for module, names in ((import_module(name), names) for name, names in MODULES.items()):
        members = [(name, getattr(module, name)) for name in names] or public(module)
        entries = [entry for name, value in members if (entry := describe(name, value, described))]
        if entries:
            page += f"\n## `{module.__name__}`\n\n" + "\n".join(entries)
    return page


def read_groups() -> Iterator[tuple[str, list[str]]]:
    """The public names in the groups that their list has: each begins with a comment of one word."""
    listed = (Path(headscope.__file__).parent / "__init__.pyi").read_text(encoding="utf-8")
    for group, lines in re.findall(r"^# (\w+)\n((?:from .*\n)+)", listed, flags=re.MULTILINE):
        yield group, re.findall(r" as (\w+)$", lines, flags=re.MULTILINE)


def public(module: ModuleType) -> Iterator[tuple[str, Any]]:
    """The names that a module lists, or, where it lists none, the public ones that it defines."""
    listed = getattr(module, "__all__", None)
    for name in listed or sorted(vars(module)):
        value = getattr(module, name)
        if listed or (not name.startswith("_") and getattr(value, "__module__", "") == module.__name__):
            yield name, value


def describe(name: str, value: Any, described: set[int]) -> str:
    """A function or class in Markdown; nothing of what was described already, and of what is neither."""
    if id(value) in described or not (inspect.isfunction(value) or inspect.isclass(value)):
        return ""
    described.add(id(value))
    entry = f"### `{name}`\n\n```text\n{header(value)}\n```\n\n{markdown(inspect.getdoc(value) or '')}\n"
    methods = vars(value).items() if inspect.isclass(value) else ()
    for method, member in methods:
        function = getattr(member, "fget", None) or getattr(member, "func", None) or getattr(member, "__func__", member)
        if not method.startswith("_") and inspect.isfunction(function) and inspect.getdoc(function):
            first = inspect.getdoc(function).split("\n\n")[0].replace("\n", " ")
            kind = "" if function is member or hasattr(member, "__func__") else " (property)"
            entry += f"\n- `{name}.{method}`{kind}: {code(first)}"
    return entry.rstrip() + "\n"


def header(value: Any) -> str:
    """The signature of a function, or the fields of a class, as they are in the source."""
    if hasattr(value, "__signature__"):
        return render_signature(value)
    source = inspect.cleandoc("\n" + inspect.getsource(value))
    node = ast.parse(source).body[0]
    lines = source.splitlines()
    if isinstance(node, ast.ClassDef):
        fields = [part for part in node.body if isinstance(part, ast.AnnAssign)]
        head = lines[node.lineno - 1].rstrip(":")
        return "\n".join([head, *(f"    {ast.get_source_segment(source, part)}" for part in fields)])
    assert isinstance(node, ast.FunctionDef)
    return "\n".join(lines[node.lineno - 1 : node.body[0].lineno - 1]).rstrip().rstrip(":")


def render_signature(function: Any) -> str:
    """The signature of a function that is made from a request, a parameter a line."""
    signature = inspect.signature(function)
    kinds = [parameter.kind for parameter in signature.parameters.values()]
    lines = [
        f"    {re.sub(r'[a-z.]+[.](?=[A-Z])', '', str(parameter))}," for parameter in signature.parameters.values()
    ]
    if inspect.Parameter.KEYWORD_ONLY in kinds:
        lines.insert(kinds.index(inspect.Parameter.KEYWORD_ONLY), "    *,")
    return "\n".join([f"def {function.__name__}(", *lines, f") -> {signature.return_annotation}"])


def markdown(docstring: str) -> str:
    """A docstring in Google's style, its sections as lists."""
    page, section = [], ""
    for line in docstring.splitlines():
        if match := re.fullmatch(r"(Args|Returns|Raises|Attributes|Yields):", line):
            section = match[1]
            page += [f"*{section}*", ""]
        elif section and line and not line.startswith(" "):
            section = ""
            page.append(line)
        elif section in ("Args", "Raises", "Attributes") and (item := re.fullmatch(r"    (\w[\w, ]*): (.*)", line)):
            page.append(f"- `{item[1]}`: {item[2]}")
        else:
            page.append(
                f"  {line.strip()}"
                if section in ("Args", "Raises", "Attributes") and line
                else line.strip()
                if section
                else line
            )
    return re.sub(r"(?:^(?:>>>|[.]{3}) .*(?:\n|$))+", fence, code("\n".join(page)).strip(), flags=re.MULTILINE)


def fence(example: re.Match[str]) -> str:
    """An example of a docstring as a block of Python."""
    return f"```python\n{re.sub('^(?:>>>|[.]{3}) ', '', example[0], flags=re.MULTILINE).rstrip()}\n```\n"


def code(text: str) -> str:
    """Double backticks as Markdown's single ones."""
    return text.replace("``", "`")


# --------------------------------------------------------------- variables


def variables() -> str:
    """Every variable that a head table may have, by what adds it, from a tiny model on made-up documents."""
    page = (
        "# Variables of the head table\n\n"
        "A head table is an `xarray.Dataset`. Each variable states its dimensions, unit and source; the same is in the "
        "file (`table.NAME.attrs`) and in `tables/columns.csv` of an atlas. Sums that are kept by fold, from which "
        "intervals and held-out scores follow, begin with `fold_`.\n\n"
        "## Dimensions\n\n| dimension | what |\n| --- | --- |\n"
    )
    page += "".join(f"| `{name}` | {what} |\n" for name, what in heads.DIMENSIONS.items())
    for title, added in steps():
        rows = "".join(
            f"| `{name}` | {', '.join(map(str, v.dims))} | {v.attrs['long_name']} | {v.attrs['units']} | "
            f"{v.attrs['source']} |\n"
            for name, v in sorted(added.items())
        )
        columns = "| variable | dimensions | what | unit | source |\n| --- | --- | --- | --- | --- |\n"
        page += f"\n## {title}\n\n{columns}{rows}"
    page += "\n## Attributes\n\nEvery table says where it came from, in " + ", ".join(
        f"`{name}`" for name in heads.REQUIRED_ATTRIBUTES
    )
    return page + ".\n"


def steps() -> Iterator[tuple[str, dict[str, xr.DataArray]]]:
    """What each reducer writes, what the analysis adds to it, and what a comparison has."""
    documents = rivals.add_rivals(tiny.documents_with_roles(13))
    summary = summarize(documents)
    with tempfile.TemporaryDirectory() as folder:
        model = headscope.load(tiny.save(Path(folder)))
    headed_model = headscope.Model.from_module(*headed.make("bert", "masked-lm"))
    decoder = headscope.Model.from_module(*headed.make("llama", "causal-lm"))
    untrained, seen, elsewhere = headscope.untrained_model(model), set(), tiny.documents_with_roles(17)
    surface = Surface(offsets=(-2,), classes=(WordClass("determiners", ("the", "a")),))
    relations = Relations.for_corpus(summary, [Rule("first word", lambda document: [0] * len(document.words))])
    own = {"surface": surface, "relations": relations}
    translator, pairs = headscope.Model.from_module(*tiny.make("bart")), tiny_pairs.pairs(29)
    parts: list[tuple[str, xr.Dataset]] = []
    for name, reducer in REDUCERS.items():
        if name in OF_TRANSLATIONS:
            parts += list(tables_of_translations(name, translator, pairs))
            continue
        chosen = own.get(name) or reducer.for_corpus(summary)
        before = model if reducer.models == 2 else None
        needs_decoder = reducer.reads_logits or reducer.reads_values
        measured = headed_model if reducer.scope == "gradient" else decoder if needs_decoder else model
        table = measure(measured, documents, [with_permutations(chosen, 7)], before=before)
        parts.append((f"Reducer `{name}`", table))
        control = None if before or measured is not model else measure(untrained, documents, [chosen])
        assessed = analyse.assess(table, control)
        parts.append((f"Added to `{name}` by `headscope.analyse.assess`", assessed))
        if any(score.has_report for score in read_scores(assessed)):
            others = [
                measure(subject, elsewhere, [chosen])
                for subject in ((model, untrained) if measured is model else (measured,) * 2)
            ]
            replicated = analyse.add_replication(assessed, *others)
            parts.append((f"Added to `{name}` by `headscope.analyse.add_replication`", replicated))
    for add in (analyse.add_head_map, analyse.add_behaviours):
        distances = measure(model, documents, ["surface", "head_distances"])
        parts.append((f"Added by `headscope.analyse.{add.__name__}`", add(distances)))
    distances = measure(model, documents, ["head_distances_before"], before=model)
    parts.append(("Added by `headscope.analyse.match_heads`", analyse.match_heads(distances)))
    parts.append(("A comparison, by `headscope.analyse.compare_variable`", comparison()))
    for title, table in parts:
        described = table.reset_coords().data_vars  # labels are coordinates
        added = {str(name): each for name, each in described.items() if "units" in each.attrs and name not in seen}
        seen |= added.keys()
        if added:
            yield title, added


def tables_of_translations(
    name: str, model: headscope.Model, pairs: list[headscope.Document]
) -> Iterator[tuple[str, xr.Dataset]]:
    """What a reducer of translations writes, and what the analysis adds to it, on made-up pairs."""
    chosen = with_permutations(REDUCERS[name].for_corpus(summarize(pairs)), 7)
    table, untrained = (measure(subject, pairs, [chosen]) for subject in (model, headscope.untrained_model(model)))
    yield f"Reducer `{name}`", table
    assessed = analyse.assess(table, untrained)
    yield f"Added to `{name}` by `headscope.analyse.assess`", assessed
    others = (measure(subject, tiny_pairs.pairs(31), [chosen]) for subject in (model, headscope.untrained_model(model)))
    yield (
        f"Added to `{name}` by `headscope.analyse.add_replication`",
        analyse.add_replication(assessed, *others),
    )
    yield (
        f"Added to `{name}` by `headscope.analyse.shortlist_heads`",
        analyse.shortlist_heads(assessed, untrained),
    )


def comparison() -> xr.Dataset:
    """What a task and its control changed, in made-up runs."""
    draw = np.random.default_rng(3)
    shares = draw.beta(2, 6, (3, 5))
    seeds = list(range(7))
    after, control = (
        simulate(draw, np.repeat(shares[None] + gain, 7, 0), seeds=seeds, control=gain == 0) for gain in (0.2, 0)
    )
    return analyse.compare_variable(simulate(draw, shares), after, control, "scope_f1")


# ------------------------------------------------------------------- lists


def reducers() -> str:
    """What each reducer measures, and what can be asked of it."""
    page = "# Reducers\n\nA reducer is a statistic of heads. Name it with `-r` or in `headscope.measure`.\n"
    for name, reducer in REDUCERS.items():
        fields = ", ".join(f"`{field.name}`" for field in dataclasses.fields(reducer)) or "none"
        page += f"\n## `{name}`\n\n{markdown(inspect.getdoc(reducer) or '')}\n\nFields: {fields}.\n"
    return page


def lists() -> str:
    """What `headscope list` prints of corpora, studies and tasks."""
    corpora = {
        "grammar": "sentences that headscope makes itself (`grammar:COUNT:SEED`)",
        "repeats": "random tokens that are repeated, for induction heads (`repeats:COUNT:SEED`)",
        "needles": "facts in long texts and questions about them, for retrieval heads (`needles:COUNT:SEED`)",
    }
    corpora |= {name: format.description for name, format in FORMATS.items()}
    page = "# Corpora, studies, tasks\n\nThe same as `headscope list corpora`, `studies` and `tasks`.\n"
    for title, rows in (
        ("Corpora", corpora),
        ("Studies", {name: study.title for name, study in STUDIES.items()}),
        ("Tasks", {name: task.description for name, task in TASKS.items()}),
    ):
        page += f"\n## {title}\n\n| name | what |\n| --- | --- |\n"
        page += "".join(f"| `{name}` | {what} |\n" for name, what in rows.items())
    return page


PAGES = {"commands": commands, "python": python, "variables": variables, "reducers": reducers, "lists": lists}


def main() -> None:
    """Write the pages."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-o", "--out", type=Path, default=FOLDER, help="folder of the pages")
    parser.add_argument("pages", nargs="*", choices=[[], *PAGES], help="pages to write; default: all")
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    for name in arguments.pages or PAGES:
        (arguments.out / f"{name}.md").write_text(PAGES[name](), encoding="utf-8")


if __name__ == "__main__":
    main()
