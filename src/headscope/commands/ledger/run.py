"""The context ledger of a model: the attention of each head to each part of prompts while the model writes.

prompts --tokenize--> each order --generate--> own text --observe_ledger--> shares --tabulate_ledger--> files
"""

import json
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr
from rich.console import Console

from headscope.analyse.ledger import FIRST_SLOT, MeasuredPrompts, rank_readers, tabulate_ledger, tabulate_tokens
from headscope.capture.forward.interface import Capture
from headscope.capture.model.model import Model
from headscope.capture.passes.stream import BATCH_TOKENS, VERIFIED_WORDS
from headscope.capture.tokens.align import spell_token
from headscope.capture.tokens.batch import collate
from headscope.capture.tokens.generation import check_decoder, generate
from headscope.capture.tokens.prompt_tokens import PromptLayout, PromptTokens, make_text
from headscope.commands.folder import OutputFolder
from headscope.commands.ledger.request import Ledger
from headscope.commands.output import open_folder
from headscope.commands.progress import Progress
from headscope.commands.sentences import print_place
from headscope.corpora.prompts import Prompt, Prompts, name_parts
from headscope.errors import CorpusError
from headscope.intervene.prediction import find_start
from headscope.layers import place_layers
from headscope.runner.checkpoint import RunSums
from headscope.runner.checkpoint import resume as resume_sums
from headscope.runner.checkpoint import save as save_sums
from headscope.runner.ledger_shares import observe_ledger
from headscope.runner.local import SAVE_EVERY
from headscope.runner.provenance import identify_model, list_versions
from headscope.view.figures.draw_ledger import draw_ledger
from headscope.view.headings import name_model
from headscope.view.ledger_report import list_content, list_parts, print_ledger

TABLE = "ledger"
"""The name of the head table."""

TEXTS = 20
"""The number of prompts for which the shares of each token are written."""

READERS = 10
"""The number of heads with separate rows in the shares of each token: the heads that read most."""


def run(request: Ledger, progress: Progress) -> xr.Dataset:
    """Measure the attention of each head to each part of the prompts, and write the results to the folder."""
    source, tokens = request.source, request.tokens
    with open_folder(request, progress) as folder:
        model = request.load(progress, task="causal-lm")
        check_decoder(model)
        layout = PromptLayout(model, find_start(model, request.start, causal=True), request.chat)
        laid_out, skipped = _lay_out(layout, source, tokens)
        about = identify_model(model) | {
            "corpus": source.name, "corpus_sha256": source.sha256, "versions": json.dumps(list_versions()),
            "generated_tokens": tokens, "start": request.start or "", "chat": int(request.chat),
        }  # fmt: skip
        measuring = _Measuring(folder, layout, laid_out, tokens, request.batch_tokens or BATCH_TOKENS, about)
        table, own = measuring.tabulate(skipped)
        table = table.assign_attrs(about)
        rows = {f"{TABLE}.csv": list_parts(table), "tokens.csv": own}
        rows |= {"content.csv": list_content(table)} if "ledger_content" in table else {}
        names = {"model": model.name, "prompts": source.name}
        return folder.finish(request, names, {TABLE: table}, rows, partial(draw_ledger, table, own))


LaidOut = Mapping[Prompt, Sequence[PromptTokens]]
"""The prompts that are read, each with its tokens in every order of its documents."""


def _lay_out(layout: PromptLayout, source: Prompts, tokens: int) -> tuple[LaidOut, Counter[str]]:
    """Tokenize the prompts that leave room for the model's answer, and count the other prompts by reason.

    Raises:
        CorpusError: The model can read none of the prompts.
    """
    limit, laid_out, skipped = layout.model.max_tokens, {}, Counter[str]()
    longest = 0
    for prompt in source.prompts:
        orders = [layout.tokenize(prompt, order) for order in prompt.list_orders()]
        own = tokens if prompt.answer is None else len(layout.tokenize_answer(prompt))
        needed = max(len(each.ids) for each in orders) + own
        longest = max(longest, needed)
        if limit is not None and needed > limit:
            skipped[f"prompts longer than {limit} tokens, with the text after them"] += 1
        else:
            laid_out[prompt] = orders
    if not laid_out:
        raise CorpusError(
            f"{source.name} has no prompt that {layout.model.name!r} can read: they have up to {longest} tokens with "
            f"the text after them, and it reads {limit}; give shorter documents or a model that reads longer texts."
        )
    return laid_out, skipped


@dataclass(frozen=True, eq=False)
class _Measuring:
    """The measurement of one table. Its sums are kept in the folder, so that a killed command can be resumed.

    Attributes:
        folder: The output folder.
        layout: The layout of the prompts, with the model.
        laid_out: The prompts as tokens.
        tokens: The maximum number of tokens that the model generates after a prompt.
        batch_tokens: The number of tokens of a batch.
        about: The identity of the measurement; sums are resumed only if it is the same.
    """

    folder: OutputFolder
    layout: PromptLayout
    laid_out: LaidOut
    tokens: int
    batch_tokens: int
    about: Mapping[str, Any]

    def tabulate(self, skipped: Counter[str]) -> tuple[xr.Dataset, pd.DataFrame]:
        """Return the head table, and the shares of each token after the first prompts.

        Raises:
            CorpusError: The model writes nothing after any prompt.
        """
        sums = self._measure()
        slots = len(next(iter(self.laid_out)).documents)
        written = [
            (str(number), prompt) for number, prompt in enumerate(self.laid_out) if sums.values[str(number), "own"].size
        ]
        skipped = skipped + Counter({"prompts after which the model writes nothing": len(self.laid_out) - len(written)})
        if not written:
            raise CorpusError(
                f"{self.layout.model.name!r} writes nothing after any prompt; give the texts to read as `answer`, or "
                "lay the chat template around the prompts."
            )
        shares, uniform, lengths = (
            np.stack([sums.values[number, name] for number, _ in written]) for name in ("shares", "uniform", "lengths")
        )
        gold = np.array([prompt.gold or 0 for _, prompt in written])
        documents = lengths[:, FIRST_SLOT : FIRST_SLOT + slots]
        model = self.layout.model
        layers = model.attention_layers["decoder"]
        table = tabulate_ledger(MeasuredPrompts(shares, uniform, documents, gold))
        table = place_layers(table, layers, model.layers["decoder"])
        own = sum(sums.values[number, "own"].size for number, _ in written)
        table = table.assign_attrs(
            documents=len(written), tokens=int(lengths.sum()) + own, own_tokens=own, skipped=json.dumps(dict(+skipped)),
            content="prompts",
        )  # fmt: skip
        texts = [
            (prompt.id, [spell_token(model.tokenizer, int(token)) for token in sums.values[number, "own"]],
             sums.values[number, "by_token"])
            for number, prompt in written if (number, "by_token") in sums.values
        ]  # fmt: skip
        return table, tabulate_tokens(texts, name_parts(slots), layers, rank_readers(table)[:READERS])

    def _measure(self) -> RunSums:
        """Measure each prompt, and return the sums by its number; with `resume`, continue from saved sums."""
        path, identity, done = self.folder.sums(TABLE), {"about": self.about}, RunSums({})
        if self.folder.resume and path.exists():
            done = resume_sums(path, identity)
        step, saved = f"reading prompts with {name_model(self.layout.model.name)}", time.monotonic()
        for count, measured in enumerate(self._measure_prompts(done), start=len({key[0] for key in done.values}) + 1):
            done = done + measured
            self.folder.progress(step, count, len(self.laid_out))
            if time.monotonic() - saved >= SAVE_EVERY:
                save_sums(done, path, identity=identity)
                saved = time.monotonic()
        save_sums(done, path, identity=identity)
        return done

    def _measure_prompts(self, done: RunSums) -> Iterator[RunSums]:
        """Yield the sums of each prompt that is not in `done`."""
        # The logits of a long text would not fit into memory, and attention does not need them.
        bare = replace(self.layout.model, module=self.layout.model.module.base_model)
        capture = None
        for number, (prompt, orders) in enumerate(self.laid_out.items()):
            if (str(number), "own") in done.values:
                continue
            capture = capture or _verify(bare, orders[0])
            own = self._find_own_text(prompt, orders[0])
            measured = {"own": np.array(own, dtype=np.int64)}
            if own:
                parts = name_parts(len(prompt.documents))
                ledger = observe_ledger(capture, prompt.id, orders, own, parts, batch_tokens=self.batch_tokens)
                measured |= {
                    "shares": ledger.shares.mean(1, dtype=np.float64), "uniform": ledger.uniform[0].mean(0),
                    "lengths": ledger.lengths[0],
                }  # fmt: skip
                if number < TEXTS:
                    measured["by_token"] = ledger.shares[0]
            yield RunSums({(str(number), name): values for name, values in measured.items()})

    def _find_own_text(self, prompt: Prompt, given: PromptTokens) -> list[int]:
        """Return the tokens of the given answer to a prompt, or of the text that the model generates."""
        if prompt.answer is not None:
            return self.layout.tokenize_answer(prompt)
        return generate(self.layout.model, given.ids, self.tokens)


def _verify(model: Model, prompt: PromptTokens) -> Capture:
    """Return a `Capture` of the model that is verified on the beginning of a prompt, and on half of that beginning."""
    parts = [
        PromptTokens(prompt.ids[:length], prompt.parts[:length]) for length in (VERIFIED_WORDS, VERIFIED_WORDS // 2)
    ]
    return Capture.verified(model, collate(model, [make_text("sample", part, []) for part in parts]))


def show(request: Ledger, table: xr.Dataset, console: Console) -> None:
    """Print the heads that read most, and the file with all shares."""
    print_ledger(table, console, whole=request.whole)
    print_place("all shares", request.out, "ledger.csv", console)
