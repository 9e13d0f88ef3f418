"""The roles of the heads of a decoder, measured on generated texts beside the same model untrained.

corpora --measure, untrained too--> tables by corpus --find_head_roles--> head table
"""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import xarray as xr

from headscope.analyse.head_roles import CORPUS, find_head_roles
from headscope.capture.model.model import Model
from headscope.capture.tokens.align import TOO_LONG
from headscope.commands.folder import OutputFolder
from headscope.corpora import Corpus, read, summarize
from headscope.corpora.document import Document
from headscope.corpora.needles import SHORT, generate_needles
from headscope.errors import CorpusError, HeadscopeError, ModelError
from headscope.files import hash_lines
from headscope.reducers import REDUCERS
from headscope.runner import Plan, measure

_ADDED = ("documents", "documents_repeated", "tokens", "tokens_unknown", "words", "units")
"""The attributes of a table that are counts of its texts."""


UNTRAINED_PART, FEWEST_UNTRAINED = 4, 20
"""The untrained model reads every fourth text, which is enough for heads that know nothing, but at least 20 texts."""


def read_generated(repeats: int, needles: int, seed: int) -> dict[str, Corpus]:
    """The corpora on which roles are measured, by the name of the table; a role is measured on the first that shows it.

    Needles stand in short texts: one token of an answer is scored in each, so that many are needed.
    """
    short = read([*generate_needles(needles, seed, others=SHORT)])
    return {
        "repeats": read(f"repeats:{repeats}:{seed}"),
        "needles": replace(short, name=f"needles:{needles}:{seed} in short texts"),
    }


def is_decoder(model: Model) -> bool:
    """True of a model whose tokens see themselves and those before them alone, and which is no saved attention."""
    return set(model.layers) == {"decoder"} and model.saved is None


def require_decoder(model: Model) -> None:
    """Refuse a model whose heads have no roles.

    Raises:
        ModelError: the model is no decoder alone, or saved attention.
    """
    model.require_weights("the untrained model")
    if not is_decoder(model):
        raise ModelError(
            f"{model.title} is no decoder alone, and roles such as induction are those of heads whose tokens see what "
            "stands before them; give a causal language model, or measure `headscope atlas`."
        )


def measure_head_roles(
    model: Model, untrained: Model, folder: OutputFolder, corpora: Mapping[str, Corpus], plan: Plan
) -> xr.Dataset:
    """The table of the roles of all heads.

    Args:
        model: a decoder, with its head if it has one.
        untrained: the same with random weights.
        folder: of the job, in which the sums are kept for resuming.
        corpora: as `read_generated` gives them.
        plan: how to batch.

    Raises:
        HeadscopeError: no role can be measured of it.
    """
    wanted = [name for name, reducer in REDUCERS.items() if any(score.roles for score in reducer.scores)]
    measured: list[tuple[xr.Dataset, xr.Dataset]] = []
    left_out: dict[str, str] = {}
    errors: list[HeadscopeError] = []
    for stem, corpus in corpora.items():
        summary = summarize(corpus)
        suited = [name for name in wanted if REDUCERS[name].is_annotated(summary)]
        by_length = sorted(corpus, key=lambda document: len(document.words))
        refused: dict[str, HeadscopeError] = {}
        for subject in (untrained, model):
            refused |= _find_refused(subject, corpus.name, by_length[0], suited, plan)
        wanted = [name for name in wanted if name not in suited]
        for name, error in refused.items():
            left_out |= {role: str(error) for score in REDUCERS[name].scores for role in score.roles.values()}
            errors.append(error)
        if able := [name for name in suited if name not in refused]:
            step = f"finding the roles of heads on {corpus.name}"
            some = by_length[:: max(1, min(UNTRAINED_PART, len(by_length) // FEWEST_UNTRAINED))]
            table = folder.measure(stem, model, corpus, able, label=step, plan=plan, summary=summary)
            control = folder.measure(
                f"untrained-{stem}", untrained, some, able, label=f"{step}, untrained", plan=plan,
                summary=summarize(some),
            )  # fmt: skip
            measured.append((table, control))
    if not measured:
        raise errors[0]
    roles = find_head_roles(measured, left_out)
    about = _join_sources([table for table, _ in measured])
    return roles.assign_attrs(about | roles.attrs | {CORPUS: about["corpus"]})


def _find_refused(
    model: Model, corpus: str, shortest: Document, names: Sequence[str], plan: Plan
) -> dict[str, HeadscopeError]:
    """The reducers that cannot be measured of a model, as the shortest text of a corpus shows, and why."""

    def find_error(some: Sequence[str]) -> HeadscopeError | None:
        try:
            measure(model, [shortest], list(some), plan=plan)
        except CorpusError as error:
            fits = f"no text of {corpus} fits into the {model.max_tokens} tokens that it reads"
            return CorpusError(fits) if TOO_LONG in str(error) else error
        except HeadscopeError as error:
            return error
        return None

    if not names or find_error(names) is None:
        return {}
    return {name: error for name in names if (error := find_error([name])) is not None}


def _join_sources(tables: Sequence[xr.Dataset]) -> dict[str, Any]:
    """The attributes of the first table, of the texts of all."""
    every = [table.attrs for table in tables]
    skipped = sum((Counter(json.loads(attrs["skipped"])) for attrs in every), Counter[str]())
    return every[0] | {
        **{name: sum(int(attrs[name]) for attrs in every) for name in _ADDED if name in every[0]},
        "corpus": " and ".join(str(attrs["corpus"]) for attrs in every),
        "corpus_sha256": hash_lines(str(attrs["corpus_sha256"]) for attrs in every),
        "skipped": json.dumps(skipped),
    }
