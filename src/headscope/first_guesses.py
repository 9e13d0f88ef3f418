"""Names by which users may look for public functions and parameters, and messages with the right names."""

import inspect
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import wraps
from typing import Any, ParamSpec, TypeVar

from headscope.errors import HeadscopeError, list_close, list_some, suggest

P = ParamSpec("P")
R = TypeVar("R")

FUNCTIONS: Mapping[str, tuple[str, str]] = {
    "atlas(model, corpus)": (
        "measures all that a corpus allows, with controls",
        "atlas_of analyse_model analyze analyze_model make_atlas overview report scan summary Atlas",
    ),
    "attend(model, text)": (
        "gives the attention of heads on a text",
        "attention attentions attention_map attention_matrix attention_weights attn get_attention get_attentions "
        "head_view model_view neuron_view weights",
    ),
    "compare(before, after)": (
        "compares heads before and after tuning",
        "change changes compare_models compare_tables comparison",
    ),
    "difference(a, b)": ("says how much each head differs between two tables", "delta diff differences subtract"),
    "disable(model, heads)": (
        "disables heads while a block runs",
        "ablate ablate_heads ablation disable_heads edit head_mask intervene knock_out knockout mask mask_heads patch "
        "prune prune_heads remove_heads zero zero_ablate",
    ),
    "draw(atlas)": (
        "draws the figures of an atlas, and headscope.attend(model, text).plot() a heatmap",
        "figure figures heatmap heatmaps plot plot_attention plot_heads plots savefig",
    ),
    "explore(table)": (
        "shows a head table, an atlas or a model on a page",
        "browse display open_page page render serve show show_heads view visualise visualize widget",
    ),
    "export(table)": ("writes the reported heads as a list", "export_heads model_card save_heads to_json"),
    'head(table, "3-1")': ("gives the values of one head", "get_head select select_head"),
    "load(model)": (
        "loads a model with its tokenizer",
        "AutoModel HookedTransformer Transformer from_pretrained load_from_hub load_model open_model pipeline wrap",
    ),
    "measure(model, corpus, reducers)": (
        "measures every head on a corpus",
        "compute entropy evaluate induction measure_heads metrics relations run score score_heads scores statistics "
        "stats surface",
    ),
    "measure_effects(model, task)": (
        "evaluates a model with each head disabled",
        "ablation_study effects head_importance importance needed_heads",
    ),
    "measure_pair(before, after, corpus)": (
        "measures how alike each head is in two models",
        "compare_pair similarity head_similarity",
    ),
    "placebo_adapter(model)": (
        "gives a model with a random adapter in place of its own",
        "placebo placebos random_adapter random_lora",
    ),
    "probe(model, treebank)": (
        "trains probes that find links from the attention of all heads",
        "probes probing train_probe structural_probe",
    ),
    "profile(model)": ("says what each head of a decoder does", "classify_heads head_roles induction_heads roles"),
    "read(corpus)": (
        "reads a corpus",
        "corpus dataset load_corpus load_data load_dataset open_corpus read_corpus texts",
    ),
    "read_table(path)": (
        "reads a head table from its file",
        "from_netcdf load_dataset_file load_results load_table open open_dataset open_table read_netcdf",
    ),
    "rerun(table)": ("measures a table again, as it records", "redo repeat reproduce"),
    "study(name)": ("measures what a paper measured", "paper papers replicate_paper run_study"),
    "to_frame(table)": (
        "gives a head table as a data frame",
        "as_frame dataframe frame frames to_csv to_dataframe to_df to_pandas",
    ),
    'top_heads(table, "obj")': (
        "gives the best heads of a relation",
        "best best_head best_heads find_heads heads rank rank_heads rank_of_heads top top_k topk",
    ),
    "tune(task, model, out)": ("fine-tunes a model on a task", "Trainer finetune fine_tune fit train"),
    "untrained_model(model)": (
        "gives the same model with random weights",
        "baseline control_model make_untrained random_model random_weights untrained",
    ),
    "write_table(table, path)": ("writes a head table to a file", "dump save save_table to_netcdf write"),
}
"""Calls of public functions: what each does, and other names under which somebody may look for it."""

SUBMODULES: Mapping[str, str] = {
    "headscope.analyse": "add_behaviours add_head_map add_intervals add_regression add_replication add_report "
    "add_significance assess compare_variable consistencies consistency find_dissociations group_heads match_heads "
    "name_behaviours shortlist_heads summarize_effects",
    "headscope.headlists": "HeadList",
    "headscope.learn": "make_control read_task",
    "headscope.runner": "measure_runs",
}
"""Names that a user may look for in `headscope` itself, by the submodule that has them."""

PARAMETERS: Mapping[str, str] = {
    "batch_tokens": "batch batch_size bs max_batch",
    "batch_size": "batch bs",
    "between": "level unit",
    "cut": "truncate truncation",
    "data": "corpora data_dir root",
    "device": "cuda device_map gpu to",
    "dtype": "fp16 half precision torch_dtype",
    "epochs": "num_epochs num_train_epochs",
    "format": "as_ fmt kind",
    "heads": "head head_mask index layer layers",
    "how": "ablation method mode strategy way",
    "learning_rate": "lr",
    "limit": "first max_documents max_examples n_texts",
    "max_tokens": "max_len max_length max_seq_length",
    "model": "checkpoint model_name model_name_or_path",
    "n": "count k top top_k topk",
    "out": "filename folder output output_dir output_folder path save save_to to",
    "permutations": "n_permutations num_permutations shuffles",
    "progress": "bar progress_bar quiet show_progress silent tqdm verbose",
    "reducers": "metric metrics reducer score scores statistic statistics",
    "sample": "n_samples num_samples size subset",
    "seed": "random_seed random_state rng",
    "text": "prompt sentence sentences texts",
    "workers": "jobs n_jobs n_workers num_proc num_workers processes threads",
}
"""Parameters of public functions, and the names that other libraries have for them."""


def explain_attribute(name: str, public: list[str]) -> str:
    """Return an error message for an unknown attribute of headscope; `public` has the known names."""
    start = f"headscope has no {name!r}"
    for submodule, names in SUBMODULES.items():
        if name in names.split():
            return f"{start}; it is in a submodule: write {submodule}.{name}."
    for call, (purpose, others) in FUNCTIONS.items():
        if name in others.split():
            return f"{start}; headscope.{call} {purpose}."
    close = suggest(name, public, before="headscope.")
    return f"{start}{close}; dir(headscope) lists its names."


def explain_arguments(
    function: Callable[..., Any], signature: inspect.Signature, arguments: tuple[Any, ...], named: Mapping[str, Any]
) -> str:
    """Return an error message for arguments that do not match a function's signature; empty if they match."""
    try:
        signature.bind(*arguments, **named)
    except TypeError as error:
        reason = str(error)
    else:
        return ""
    parameters, name = signature.parameters.values(), function.__name__
    names = [each.name for each in parameters if each.kind not in _OPEN]
    if unknown := [each for each in named if each not in names]:
        return f"{name}() has no parameter {unknown[0]!r}{_find_parameter(unknown[0], names)}."
    missing = [each.name for each in parameters if each.default is each.empty and each.kind not in _OPEN]
    missing = [each for each in missing if each not in named and each not in names[: len(arguments)]]
    if missing:
        reason = f"lacks {' and '.join(f'`{each}`' for each in missing)}"
    example = _read_example(name, function.__doc__ or "")
    return f"{name}() {reason}{f'; write it as in {example}' if example else ''}."


_OPEN = {inspect.Parameter.VAR_KEYWORD, inspect.Parameter.VAR_POSITIONAL}


def _find_parameter(name: str, names: list[str]) -> str:
    """Return the end of a message about an unknown parameter: similar parameters or, failing these, all of them."""
    same = [each for each in names if name in PARAMETERS.get(each, "").split()]
    parts = [each for each in names if {*name.split("_")} & {*each.split("_")}]
    close = same or list_close(name, names) or parts
    if close:
        return f" (did you mean {' or '.join(f'`{each}`' for each in close)}?)"
    return f"; it has {list_some(names)}"


def explained(function: Callable[P, R]) -> Callable[P, R]:
    """Wrap a public function so that wrong arguments raise a readable error, and errors name its parameters."""
    signature = inspect.signature(function)

    options = {f"--{each.replace('_', '-')}": each for each in signature.parameters}

    @wraps(function)
    def call(*arguments: P.args, **named: P.kwargs) -> R:
        if sentence := explain_arguments(function, signature, arguments, named):
            raise TypeError(sentence)
        with in_python(options):
            return function(*arguments, **named)

    return call


@contextmanager
def in_python(options: Mapping[str, str]) -> Iterator[None]:
    """Make errors of headscope in the block name parameters, not options, and hide the errors that caused them.

    Args:
        options: The parameter of each option of the terminal. Text in backticks does not change.
    """
    try:
        yield
    except HeadscopeError as error:
        parts = str(error).split("`")
        parts[::2] = [_OPTION.sub(lambda name: _spell(name[0], options), part) for part in parts[::2]]
        error.args = ("`".join(parts),)
        raise error from None


def _spell(option: str, options: Mapping[str, str]) -> str:
    """Return the parameter of a terminal option, in backticks; an option without a parameter is returned unchanged."""
    return f"`{options[option]}`" if option in options else option


_OPTION = re.compile(r"--[a-z][-a-z]*\b")


def _read_example(name: str, docstring: str) -> str:
    """Return the first call of the function `name` in the examples of its docstring; empty if there is no example."""
    lines = [line.strip()[4:] for line in docstring.splitlines() if line.strip().startswith((">>> ", "... "))]
    line = next((line for line in lines if f"headscope.{name}(" in line), "").partition("  #")[0]
    return re.sub(r"^(?:with |\w+ = )|(?: as \w+)?:$", "", line.strip())
