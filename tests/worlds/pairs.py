"""Worlds of untrained decoders and minimal pairs, without random sets of heads or those that the output reads.

Of two random sentences that one is called grammatical which the model prefers, so that it can lose what it prefers.
"""

import json
import random
from pathlib import Path

import torch
import transformers as hf

import headscope
import tiny
from headscope.analyse.lesions import SUFFERS
from headscope.capture.model.model import Model
from headscope.intervene.likelihood import compute_likelihoods
from headscope.view.lesions_report import list_lesions

LAYERS, HEADS, WIDTH = 2, 8, 4
PHENOMENA, EXAMPLES, LENGTH = 4, 8, 5
SETS = ("first", "second")

READ = 6.0
"""How strongly the output reads the planted heads."""


def make(seed: int, planted: bool) -> Model:
    """An untrained decoder, whose output embeddings may read what the first head of each layer adds."""
    body, tokenizer = tiny.make("gpt2")
    sizes = {"n_layer": LAYERS, "n_head": HEADS, "n_embd": HEADS * WIDTH, "initializer_range": 0.3}
    config = hf.GPT2Config.from_dict(body.config.to_dict() | sizes | {"tie_word_embeddings": False})
    with torch.random.fork_rng(devices=[]), torch.no_grad():
        torch.manual_seed(seed)
        module = hf.GPT2LMHeadModel(config).eval()
        if planted:
            for block in module.transformer.h:
                added = block.attn.c_proj.weight[:WIDTH].T
                read = torch.randn(len(module.lm_head.weight), WIDTH) @ (added / added.norm(dim=0)).T
                module.lm_head.weight += READ * read
    return Model.from_module(module, tokenizer, name=f"untrained {seed}")


def write_pairs(folder: Path, model: Model, chance: random.Random) -> Path:
    """The pairs of a world, in a file."""
    sentences = [" ".join(chance.choices(tiny.WHOLE, k=LENGTH)) for _ in range(2 * PHENOMENA * EXAMPLES)]
    scores = [each.log_probability for each in compute_likelihoods(model, sentences)]
    path, lines = folder / "pairs.jsonl", []
    for number in range(PHENOMENA * EXAMPLES):
        bad, good = sorted((2 * number, 2 * number + 1), key=scores.__getitem__)
        pair = {"sentence_good": sentences[good], "sentence_bad": sentences[bad], "pairID": str(number)}
        lines.append(json.dumps(pair | {"UID": f"u{number % PHENOMENA}", "linguistics_term": f"p{number % PHENOMENA}"}))
    path.write_text("\n".join(lines))
    return path


def list_suffering(folder: Path, seed: int, *, planted: bool = False) -> set[str]:
    """The sets without which something suffers: random ones, the first of the planted heads if there are any."""
    model, chance = make(seed, planted), random.Random(seed)
    sets = {name: [f"{layer}-{chance.randint(1, HEADS)}" for layer in range(1, LAYERS + 1)] for name in SETS}
    if planted:
        sets[SETS[0]] = [f"{layer}-1" for layer in range(1, LAYERS + 1)]
    table = headscope.lesions(model, write_pairs(folder, model, chance), sets, progress=False)
    lesions = list_lesions(table)
    return {*lesions.loc[lesions["verdict"] == SUFFERS, "set"]}
