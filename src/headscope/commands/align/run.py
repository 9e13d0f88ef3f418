"""The command `align`: measure which heads of the cross-attention are the word alignment of an encoder-decoder.

pairs --measure--> head table --assess, shortlist_heads--> verdict on each head --> files, alignment_heads
"""

from functools import partial
from pathlib import Path
from typing import Any

import xarray as xr
from rich.console import Console
from rich.markup import escape

from headscope.analyse import assess
from headscope.analyse.shortlist import shortlist_heads
from headscope.capture import untrained_model
from headscope.capture.model.languages import set_languages
from headscope.capture.model.model import Model
from headscope.capture.open.generation_settings import read_generation_settings
from headscope.commands.align.request import SETTINGS, Align
from headscope.commands.inputs import make_plan
from headscope.commands.output import open_folder
from headscope.commands.progress import Progress
from headscope.commands.sentences import print_place
from headscope.corpora import summarize
from headscope.errors import ModelError
from headscope.headlists.alignment_heads import CROSS, render_settings
from headscope.reducers import WordAlignment
from headscope.reducers.support.permutations import with_permutations
from headscope.view.headings import name_model
from headscope.view.shortlist_report import list_shortlist, list_shortlisted, print_shortlist
from headscope.view.table_report import print_table


def run(request: Align, progress: Progress) -> xr.Dataset:
    """Measure the heads of the cross-attention, choose those that stand out, and write the results to the folder."""
    documents = request.documents
    with open_folder(request, progress) as folder:
        settings = read_generation_settings(request.model)
        model = request.load(progress)
        _check_cross_attention(model)
        model = set_languages(model, source=request.source, target=request.target)
        summary = summarize(documents)
        reducer = with_permutations(WordAlignment.for_corpus(summary), request.permutations)
        measure = partial(folder.measure, plan=make_plan(request), summary=summary)
        table = measure("heads", model, documents, [reducer], label=f"measuring {name_model(model.name)}")
        untrained = measure(
            "untrained",
            untrained_model(model, seed=request.seed),
            documents,
            [with_permutations(reducer, 0)],
            label="measuring the untrained model",
        )
        table = shortlist_heads(assess(table, untrained), untrained).assign_attrs(seed=request.seed)
        files: dict[str, Any] = {"untrained.nc": untrained, "alignment.csv": list_shortlist(table)}
        if (heads := list_shortlisted(table, request.step, request.top)).entries:
            files[SETTINGS] = render_settings(heads, settings)
        return folder.finish(request, {"model": model.name, "pairs": documents.name}, {"heads": table}, files)


def _check_cross_attention(model: Model) -> None:
    """Raise an error for a model without cross-attention."""
    if CROSS not in model.layers:
        raise ModelError(
            f"{model.name!r} ({type(model.module).__name__}) has no cross-attention, so no head of it aligns a "
            "translation with its source; give an encoder-decoder."
        )


def show(request: Align, table: xr.Dataset, console: Console) -> None:
    """Print the table, the heads that stand out, and the files in which the results are."""
    print_table(table, console, whole=request.whole)
    print_shortlist(table, console, whole=request.whole)
    out = Path(request.out or "")
    print_place("all heads", request.out, "alignment.csv", console)
    if (out / SETTINGS).exists():
        done = "predicted" if request.step == "predicting" else "read"
        sentence = f"The heads that stand out where words are {done} are the alignment_heads in {out / SETTINGS}."
    else:
        sentence = f"No head stands out at the step {request.step}, so {SETTINGS} is not written."
    console.print(escape(sentence), soft_wrap=True, highlight=False)
