"""The roles of the heads of a decoder, measured on generated texts, in comparison with the untrained model.

corpora --measure, untrained too--> tables by corpus --find_head_roles--> head table
"""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
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
"""The attributes of a table that are counts, and are added when tables are joined."""


UNTRAINED_PART, FEWEST_UNTRAINED = 4, 20
"""The untrained model reads every fourth text, which is enough for heads without roles, but at least 20 texts."""


def read_generated(repeats: int, needles: int, seed: int) -> dict[str, Corpus]:
    """Return the generated corpora for measuring roles, by the name of their table.

    Each role is measured on the first corpus that has its annotation. The texts with needles are short and many, since
    only one token of each answer is scored.

    Args:
        repeats: The number of texts of repeated random tokens.
        needles: The number of texts with needles.
        seed: The seed of both.
    """
    short = read([*generate_needles(needles, seed, others=SHORT)])
    return {
        "repeats": read(f"repeats:{repeats}:{seed}"),
        "needles": replace(short, name=f"needles:{needles}:{seed} in short texts"),
    }


def is_decoder(model: Model) -> bool:
    """Return True for a model that is only a decoder; False for other models and for saved attention."""
    return set(model.layers) == {"decoder"} and model.saved is None


def require_decoder(model: Model) -> None:
    """Raise an error for a model whose heads have no roles.

    Raises:
        ModelError: The model is not a decoder alone, or it is saved attention.
    """
    model.require_weights("the untrained model")
    if not is_decoder(model):
        raise ModelError(
            f"{model.title} is no decoder alone, and roles such as induction are those of heads whose tokens see what "
            "comes before them; give a causal language model, or measure `headscope atlas`."
        )


def measure_head_roles(
    model: Model, untrained: Model, folder: OutputFolder, corpora: Mapping[str, Corpus], plan: Plan
) -> xr.Dataset:
    """Measure the roles of all heads of a decoder.

    Args:
        model: The decoder, with its head for language modelling if it has one.
        untrained: The same architecture with random weights.
        folder: The output folder, in which sums are kept for resuming.
        corpora: The corpora from `read_generated`.
        plan: How to batch the texts.

    Raises:
        HeadscopeError: No role can be measured.
    """
    wanted = [name for name, reducer in REDUCERS.items() if any(score.roles for score in reducer.scores)]
    beside = _Beside(model, untrained, folder, plan)
    measured: list[tuple[xr.Dataset, xr.Dataset]] = []
    left_out: dict[str, str] = {}
    errors: list[HeadscopeError] = []
    for stem, corpus in corpora.items():
        summary = summarize(corpus)
        suited = [name for name in wanted if REDUCERS[name].is_annotated(summary)]
        wanted = [name for name in wanted if name not in suited]
        # Do this first, since a killed command is resumed with the same reducers.
        refused = beside.find_refused(corpus, suited)
        for name, error in refused.items():
            why = str(error).partition("; leave out ")[0]  # the user has not named the reducer
            left_out |= {role: why for score in REDUCERS[name].scores for role in score.roles.values()}
            errors.append(error)
        if able := [name for name in suited if name not in refused]:
            measured.append(beside.measure(stem, corpus, able))
    if not measured:
        raise errors[0]
    roles = find_head_roles(measured, left_out)
    about = _join_sources([table for table, _ in measured])
    return roles.assign_attrs(about | roles.attrs | {CORPUS: about["corpus"]})


@dataclass(frozen=True)
class _Beside:
    """A model and the untrained model, which are measured in the same way."""

    model: Model
    untrained: Model
    folder: OutputFolder
    plan: Plan

    def measure(self, stem: str, corpus: Corpus, names: Sequence[str]) -> tuple[xr.Dataset, xr.Dataset]:
        """Measure the model on a corpus, and the untrained model on some of its texts; return both tables."""
        by_length = _sort(corpus)
        some = by_length[:: max(1, min(UNTRAINED_PART, len(by_length) // FEWEST_UNTRAINED))]
        step = f"finding the roles of heads on {corpus.name}"
        table = self.folder.measure(
            stem, self.model, corpus, names, label=step, plan=self.plan, summary=summarize(corpus)
        )
        control = self.folder.measure(
            f"untrained-{stem}", self.untrained, some, names, label=f"{step}, untrained", plan=self.plan,
            summary=summarize(some),
        )  # fmt: skip
        return table, control

    def find_refused(self, corpus: Corpus, names: Sequence[str]) -> dict[str, HeadscopeError]:
        """Return the reducers that cannot be measured on one of the models, each with the error.

        This is tried with the shortest text of the corpus.
        """
        shortest = _sort(corpus)[0]
        refused: dict[str, HeadscopeError] = {}
        for model in (self.untrained, self.model):
            for name in names:
                try:
                    measure(model, [shortest], [name], plan=self.plan)
                except CorpusError as error:
                    fits = f"no text of {corpus.name} fits into the {model.max_tokens} tokens that it reads"
                    refused[name] = CorpusError(fits) if TOO_LONG in str(error) else error
                except HeadscopeError as error:
                    refused[name] = error
        return refused


def _sort(corpus: Corpus) -> list[Document]:
    """Return the documents of a corpus from the shortest to the longest."""
    return sorted(corpus, key=lambda document: len(document.words))


def _join_sources(tables: Sequence[xr.Dataset]) -> dict[str, Any]:
    """Return the attributes of the first table, with the counts and the corpora of all tables."""
    every = [table.attrs for table in tables]
    skipped = sum((Counter(json.loads(attrs["skipped"])) for attrs in every), Counter[str]())
    return every[0] | {
        **{name: sum(int(attrs[name]) for attrs in every) for name in _ADDED if name in every[0]},
        "corpus": " and ".join(str(attrs["corpus"]) for attrs in every),
        "corpus_sha256": hash_lines(str(attrs["corpus_sha256"]) for attrs in every),
        "skipped": json.dumps(skipped),
    }
