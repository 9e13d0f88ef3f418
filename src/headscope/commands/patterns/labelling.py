"""Labelling attention maps by eye: write a folder of maps, and show them on a local page.

model, texts --choose--> folder of maps --page, a key a map--> labels.csv, which `headscope patterns --labels` trains on
"""

from collections.abc import Callable

from headscope.commands.inputs import make_plan
from headscope.commands.patterns.annotate import annotate
from headscope.commands.patterns.request import LabelMaps
from headscope.commands.progress import Progress
from headscope.corpora.corpus import hash_documents, name_documents
from headscope.errors import CorpusError
from headscope.learn.map_labels import LABELS, measure_agreement, read_maps_to_label, write_maps
from headscope.learn.map_sample import choose_maps, read_maps
from headscope.runner.provenance import identify_reading
from headscope.text_forms import find_form


def run(request: LabelMaps, progress: Progress) -> str:
    """Write the maps, show them until the user is done, and return a sentence with the number of labelled maps."""
    prepare_maps(request, progress)
    return serve_maps(request, request.ready)


def prepare_maps(request: LabelMaps, progress: Progress) -> None:
    """Write the maps that are to be labelled to the folder; a folder that already has maps is left as it is.

    Raises:
        HeadscopeError: The model or the corpus cannot be read, the corpus has too few documents, or the existing maps
            are of texts in another form than requested.
    """
    if request.is_prepared:
        prepared = find_form(read_maps_to_label(request.place).about)
        if request.text not in (None, prepared):
            raise CorpusError(
                f"the maps in {request.place} are of {prepared} texts, and {request.text} ones were asked for; leave "
                "`text` out, or name another folder."
            )
        return
    documents, folder = request.documents, request.place
    progress("loading the model", 0, 0)
    model = request.load()
    attention_type, layers = next(iter(model.attention_layers.items()))
    names = choose_maps(list(documents), layers, model.shape.heads[attention_type], request.maps, request.seed)
    by_name, plan = {}, make_plan(request)
    for each in read_maps(model, list(documents), names, plan):
        by_name[each.name] = each
        progress("reading maps", len(by_name), len(names))
    chosen = [by_name[name] for name in names if name in by_name]
    about = {
        "model": model.name,
        "weights_sha256": model.weights_sha256,
        "corpus": name_documents(documents),
        "corpus_sha256": hash_documents(documents),
        **identify_reading(model, plan),
        "seed": request.seed,
        "left_out": len(names) - len(chosen),
    }
    write_maps(folder, chosen, about)


def serve_maps(request: LabelMaps, ready: Callable[[str], None]) -> str:
    """Show the maps of a folder on a local page until the user is done.

    Returns:
        A sentence with the number of labelled maps, and one about the agreement if some were labelled twice.

    Raises:
        HeadscopeError: The folder has no maps, is damaged, or has too few labels for a second pass.
    """
    labelled = annotate(request.place, second=request.second, seed=request.seed, ready=ready)
    says = f"{len(labelled.labels)} of {len(labelled.maps)} maps are labelled in {request.place / LABELS}."
    twice, share, kappa = measure_agreement(labelled)
    if twice:
        says += f" Of {twice} that were labelled twice, {share:.0%} have the same label (Cohen's kappa {kappa:.2f})."
    return says
