"""Labelling attention maps by eye: a folder of maps, and a local page that shows them one after the other.

model, texts --choose--> folder of maps --page, a key a map--> labels.csv, which `headscope patterns --labels` trains on
"""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import torch

from headscope.capture.loading import Loadable, load
from headscope.corpora.corpus import hash_documents, name_documents
from headscope.jobs.annotate import annotate
from headscope.jobs.arguments import check_model
from headscope.jobs.map_arguments import MAPS, check_labelling
from headscope.jobs.patterns import read_texts
from headscope.jobs.progress import Progress, ignore_progress, shows_progress
from headscope.learn.map_labels import LABELS, measure_agreement, write_maps
from headscope.learn.map_sample import choose_maps, read_maps
from headscope.reducers.support.map_patterns import make_images
from headscope.view.figures import save
from headscope.view.figures.contact_sheet import draw_contact_sheets


@shows_progress
def label_maps(
    model: Loadable,
    corpus: str | Path | Iterable[Any],
    folder: str | Path,
    *,
    maps: int = 144,
    second: int = 0,
    data: str | Path = ".",
    format: str | None = None,
    limit: int | None = None,
    sample: int | None = 1000,
    seed: int = 0,
    device: str = "cpu",
    trust_remote_code: bool = False,
    ready: Callable[[str], None] = print,
    progress: Progress | bool | None = None,
) -> str:
    """Label attention maps on a local page, and say how many are labelled; each key is saved at once.

    Maps are chosen at random, as many of each head, and no two of one text. The page does not say of which head a map
    is. A folder that has maps already is gone on with, and the model is not loaded.

    Args:
        model: as of `headscope.patterns`.
        corpus: as of `headscope.patterns`.
        folder: for the maps (``maps.npz``, ``maps.csv``), contact sheets (``sheets/``) and ``labels.csv``.
        maps: how many to label.
        second: label so many of the labelled maps a second time, without seeing the first label.
        data: as of `headscope.patterns`.
        format: as of `headscope.patterns`.
        limit: as of `headscope.patterns`.
        sample: as of `headscope.patterns`.
        seed: of the choice.
        device: as of `headscope.patterns`.
        trust_remote_code: as of `headscope.patterns`.
        ready: called with the address of the page.
        progress: as of `headscope.patterns`.

    Raises:
        HeadscopeError: in one sentence, what was wrong with the model, the corpus or the folder.
    """
    prepare_maps(
        model, corpus, folder, maps=maps, data=data, format=format, limit=limit, sample=sample, seed=seed,
        device=device, trust_remote_code=trust_remote_code, progress=progress,
    )  # fmt: skip
    return serve_maps(folder, second=second, ready=ready)


@shows_progress
def prepare_maps(
    model: Loadable,
    corpus: str | Path | Iterable[Any],
    folder: str | Path,
    *,
    maps: int = 144,
    data: str | Path = ".",
    format: str | None = None,
    limit: int | None = None,
    sample: int | None = 1000,
    seed: int = 0,
    device: str = "cpu",
    trust_remote_code: bool = False,
    progress: Progress | bool | None = None,
) -> None:
    """Write the maps that are to be labelled to a folder, with contact sheets; one that has maps is left as it is.

    The arguments, and the error, are those of `label_maps`.
    """
    folder, progress = Path(folder).expanduser(), progress if callable(progress) else ignore_progress
    check_labelling(maps, 0)
    check_model(model)
    if (folder / MAPS).exists():
        return
    progress("reading the corpus", 0, 0)
    documents = read_texts(corpus, data=data, format=format, limit=limit, sample=sample, seed=seed)
    progress("loading the model", 0, 0)
    model = load(model, device=device, trust_remote_code=trust_remote_code)
    attention_type, layers = next(iter(model.attention_layers.items()))
    names = choose_maps(list(documents), layers, model.shape.heads[attention_type], maps, seed)
    by_name = {}
    for each in read_maps(model, list(documents), names):
        by_name[each.name] = each
        progress("reading maps", len(by_name), len(names))
    chosen = [by_name[name] for name in names if name in by_name]
    images = [make_images(torch.from_numpy(each.weights)[None])[0, 0].numpy() for each in chosen]
    ends = [[(separator + 0.5) / len(each.weights) for separator in each.separators] for each in chosen]
    for number, figure in enumerate(draw_contact_sheets(images, ends), 1):
        save(figure, folder / "sheets", f"sheet-{number:02}", pdf=False)
    about = {
        "model": model.name, "weights_sha256": model.weights_sha256, "corpus": name_documents(documents),
        "corpus_sha256": hash_documents(documents), "seed": seed, "left_out": len(names) - len(chosen),
    }  # fmt: skip
    write_maps(folder, chosen, about)


def serve_maps(folder: str | Path, *, second: int = 0, seed: int = 0, ready: Callable[[str], None] = print) -> str:
    """Show the maps of a folder on a local page until the user is done, and say how many are labelled.

    Raises:
        HeadscopeError: the folder has no maps, is damaged, or has too few labels for a second pass.
    """
    folder = Path(folder).expanduser()
    check_labelling(1, second)
    labelled = annotate(folder, second=second, seed=seed, ready=ready)
    says = f"{len(labelled.labels)} of {len(labelled.maps)} maps are labelled in {folder / LABELS}."
    twice, share, kappa = measure_agreement(labelled)
    if twice:
        says += f" Of {twice} that were labelled twice, {share:.0%} have the same label (Cohen's kappa {kappa:.2f})."
    return says
