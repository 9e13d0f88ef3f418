"""A BERT that reads the answer to a task with heads that we chose, and with no others.

The task: which noun a sentence has, a dog or a cat. A planted head looks from [CLS] at the noun and writes its value
to one number of the residual stream, which the classifier reads. The verb has a larger value of its own, at random, so
that attention with equal weights says nothing. All other heads write to other numbers, which nobody reads.
"""

import random
from collections.abc import Collection, Mapping
from pathlib import Path
from types import MappingProxyType

import torch
from transformers import BertForSequenceClassification

from headscope.capture.model.model import Model
from headscope.learn.task import TEST, Example, Task
from planted import HEADS, KINDS, LAYERS, SIZE, WORDS, Rule, plant, previous, tokenizer

LABELS = ("cat", "dog")
READ = 101
"""The number of the residual stream that the classifier reads; behind it, and before, are those of no use."""

VALUES = {"dog": 1.0, "cat": -1.0, "sees": 5.0, "likes": -5.0}


def look_at_noun(query: torch.Tensor, key: torch.Tensor) -> None:
    """From [CLS] to nouns."""
    query[0, SIZE + WORDS.index("[CLS]")] = 1
    key[0, [SIZE + WORDS.index(word) for word in KINDS["noun"]]] = 1


def mark_objects(query: torch.Tensor, key: torch.Tensor) -> None:
    """From [CLS] and from verbs to nouns."""
    look_at_noun(query, key)
    query[0, [SIZE + WORDS.index(word) for word in KINDS["verb"]]] = 1


def plant_task(
    heads: Collection[tuple[int, int]],
    *,
    rules: Mapping[tuple[int, int], Rule] = MappingProxyType({}),
    scale: float = 3.0,
    seed: int = 0,
) -> Model:
    """The model with these heads (layer and head, counted from 1), whose logits differ by about 2 x `scale`.

    `rules` are what heads look at; those of others are `look_at_noun` and, of heads without use, `previous`.
    """
    base = plant({**_choose_rules(heads), **rules}).module
    config = base.config
    config.num_labels, config.id2label = 2, dict(enumerate(LABELS))
    config.label2id = {label: number for number, label in enumerate(LABELS)}
    module = BertForSequenceClassification(config).eval()
    generator = torch.Generator().manual_seed(seed)
    free = torch.tensor([n for n in range(SIZE + len(WORDS), HEADS * SIZE) if n != READ])
    with torch.no_grad():
        module.bert.load_state_dict(base.state_dict(), strict=False)
        for layer in range(1, LAYERS + 1):
            attention = module.bert.encoder.layer[layer - 1].attention
            for head in range(1, HEADS + 1):
                rows, planted = slice((head - 1) * SIZE, head * SIZE), (layer, head) in heads
                value, out = attention.self.value.weight, attention.output.dense.weight
                if planted:
                    for word, number in VALUES.items():
                        value[rows][0, SIZE + WORDS.index(word)] = number
                    out[READ, rows.start] = 0.1
                else:
                    value[rows] = 0.1 * torch.randn(SIZE, HEADS * SIZE, generator=generator)
                    out[free, rows] = 0.02 * torch.randn(len(free), SIZE, generator=generator)
        pooler, classifier = module.bert.pooler.dense, module.classifier
        pooler.weight.zero_()
        pooler.bias.zero_()
        classifier.weight.zero_()
        classifier.bias.zero_()
        # The norm puts every number around the mean of all.
        pooler.weight[0, READ], pooler.bias[0] = 1.0, -2 / (HEADS * SIZE)
        classifier.weight[1, 0], classifier.weight[0, 0] = scale * 10, -scale * 10
    return Model.from_module(module, tokenizer(), name="planted task")


def _choose_rules(heads: Collection[tuple[int, int]]) -> dict[tuple[int, int], Rule]:
    """Those of the planted heads; all others look at the token before."""
    every = [(layer, head) for layer in range(1, LAYERS + 1) for head in range(1, HEADS + 1)]
    return {head: look_at_noun if head in heads else previous for head in every}


def make_task(count: int = 61, seed: int = 0) -> Task:
    """Sentences with a noun, a verb and other words, in any order; two of each group have one source."""
    sampler = random.Random(seed)
    examples = []
    for number in range(count):
        label = sampler.choice(LABELS)
        words = [label, sampler.choice(KINDS["verb"]), sampler.choice(KINDS["determiner"])]
        words += ["now"] * sampler.choice([2, 3, 5, 7])
        sampler.shuffle(words)
        examples.append(Example(f"made:{number}", (" ".join(words),), label, group=f"source-{number // 2}"))
    return Task("nouns", "classification", LABELS, {TEST: tuple(examples)}, "accuracy", positive="dog")


def save_task(folder: Path, heads: Collection[tuple[int, int]]) -> None:
    """Write the model to ``model`` in a folder, and the task as TSV files to ``nouns``."""
    model = plant_task(heads)
    model.module.save_pretrained(folder / "model")
    model.tokenizer.save_pretrained(folder / "model")
    rows = make_task(61).splits["test"]
    (folder / "nouns").mkdir()
    for number, split in enumerate(("train", "validation", "test")):
        lines = [f"{row.texts[0]}\t{row.label}\n" for row in rows[number::3]]
        (folder / "nouns" / f"{split}.tsv").write_text("text\tlabel\n" + "".join(lines))
