"""The word alignment of an encoder-decoder: which heads of its cross-attention it is, written to a folder.

pairs --measure--> head table --assess, shortlist_heads--> verdict on each head --> files, alignment_heads
"""

from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import Any

import xarray as xr

from headscope.analyse import assess
from headscope.analyse.shortlist import shortlist_heads
from headscope.capture import untrained_model
from headscope.capture.generation_settings import read_generation_settings
from headscope.capture.languages import set_languages
from headscope.capture.loading import Loadable, load
from headscope.capture.model import Model
from headscope.corpora import summarize
from headscope.errors import ModelError
from headscope.files import write_text
from headscope.headlists import HeadList
from headscope.headlists.alignment_heads import CROSS, render_settings
from headscope.heads import write_table
from headscope.jobs.align_arguments import MANIFEST, SETTINGS, check_handing_on, check_settings, read_pairs
from headscope.jobs.arguments import check_model
from headscope.jobs.folder import OutputFolder, write_csv
from headscope.jobs.inputs import make_plan
from headscope.jobs.progress import Progress, ignore_progress, shows_progress
from headscope.reducers import WordAlignment
from headscope.reducers.support.permutations import with_permutations
from headscope.view.headings import name_model
from headscope.view.shortlist import list_shortlist, list_shortlisted

TABLES = ("heads", "untrained")
"""The head tables of the folder: of the model, and of the same model with random weights."""


@shows_progress
def measure_alignment(
    model: Loadable,
    pairs: str | Path | Iterable[Any],
    out: str | Path = "headscope-alignment",
    *,
    limit: int | None = None,
    sample: int | None = None,
    seed: int = 0,
    source: str | None = None,
    target: str | None = None,
    step: str = "predicting",
    top: int | None = None,
    permutations: int | None = None,
    batch_tokens: int | None = None,
    device: str = "cpu",
    trust_remote_code: bool = False,
    resume: bool = False,
    progress: Progress | bool | None = None,
) -> xr.Dataset:
    """Find the heads of the cross-attention of an encoder-decoder that are the word alignment of pairs of sentences.

    The decoder is given the translation. Heads are chosen on one half of the pairs and scored on the other, beside
    rules that know the places of words alone, permuted links, and the same model with random weights.

    Args:
        model: an encoder-decoder, as `headscope.load` takes it; it needs no task head.
        pairs: a file or folder of word-aligned pairs in the format ``alignments``, or documents with a ``translation``
            and its ``alignment``.
        out: the folder for ``heads.nc``, ``untrained.nc``, ``alignment.csv``, ``generation_config.json`` (if heads
            stand out) and ``alignment.json``, which lists them.
        limit: measure the first so many pairs. Default: all.
        sample: measure so many pairs at random, in their order. Default: all.
        seed: random seed of the sample and of the untrained model.
        source: the language of the text, for a tokenizer of several languages, such as ``eng_Latn``. Default: that of
            the tokenizer.
        target: the language of the translation, likewise.
        step: the step of the decoder whose heads are written to ``generation_config.json``: that which is
            ``predicting`` a word, or ``reading`` it. Both are measured.
        top: write so many of these heads there, the best first. Default: all that stand out.
        permutations: number of permutations for the p-values; 0 skips them. Default: 999.
        batch_tokens: tokens in a batch, padding included. Default: 2048.
        device: where to run the model; a loaded model stays where it is.
        trust_remote_code: run the Python code of the model's repository.
        resume: continue a killed run with the same arguments.
        progress: True shows it, False does not; a function is called with the step, how much of it is done, and how
            much there is. Default: shown on a terminal and in a notebook.

    Returns:
        The head table that is in ``heads.nc``; `headscope.shortlist_heads` says what its verdicts are.

    Raises:
        HeadscopeError: in one sentence, what was wrong with the model, the pairs, an argument or the folder.
    """
    check_handing_on(step, top)
    check_model(model)
    progress = progress if callable(progress) else ignore_progress
    documents = read_pairs(pairs, limit=limit, sample=sample, seed=seed)
    check_settings(Path(out))
    with OutputFolder("the alignment", Path(out), MANIFEST, TABLES, resume, progress) as folder:
        progress("loading the model", 0, 0)
        settings = read_generation_settings(model)
        model = load(model, device=device, trust_remote_code=trust_remote_code)
        _refuse_without_cross_attention(model)
        model = set_languages(model, source=source, target=target)
        summary = summarize(documents)
        reducer = with_permutations(WordAlignment.for_corpus(summary), permutations)
        measure = partial(folder.measure, plan=make_plan(None, None, None, batch_tokens), summary=summary)
        table = measure("heads", model, documents, [reducer], label=f"measuring {name_model(model.name)}")
        untrained = measure(
            "untrained", untrained_model(model, seed=seed), documents, [with_permutations(reducer, 0)],
            label="measuring the untrained model",
        )  # fmt: skip
        table = shortlist_heads(assess(table, untrained), untrained)
        arguments = {
            "model": model.name, "pairs": documents.name, "limit": limit, "sample": sample, "seed": seed,
            "source": source, "target": target, "step": step, "top": top,
            "permutations": permutations, "batch_tokens": batch_tokens,
        }  # fmt: skip
        call = f"measure_alignment({', '.join(f'{name}={value!r}' for name, value in arguments.items())})"
        table = table.assign_attrs(call=call, seed=seed)
        heads = list_shortlisted(table, step, top)
        about = {"pairs": documents.name, "model": model.name, "step": step}
        folder.write(lambda fresh: _fill(fresh, table, untrained, heads, settings), about)
    return table


def _refuse_without_cross_attention(model: Model) -> None:
    if CROSS not in model.layers:
        raise ModelError(
            f"{model.name!r} ({type(model.module).__name__}) has no cross-attention, so no head of it aligns a "
            "translation with its source; give an encoder-decoder."
        )


def _fill(fresh: Path, table: xr.Dataset, untrained: xr.Dataset, heads: HeadList, settings: dict[str, Any]) -> None:
    """Write all files of the folder."""
    for name, content in zip(TABLES, (table, untrained), strict=True):
        write_table(content, fresh / f"{name}.nc")
    write_csv(list_shortlist(table), fresh / "alignment.csv")
    if heads.entries:
        write_text(render_settings(heads, settings), fresh / SETTINGS)
