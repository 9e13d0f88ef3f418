"""Alignment heads as openai-whisper packs them: read where a configuration says how many layers there are."""

import gzip
import json
from base64 import b85encode

import pytest

from headscope.errors import TableError
from headscope.headlists.list_formats import read_heads, render_heads

TINY = "ABzY8bu8Lr0{>%RKn9Fp%m@SkK7Kt=7ytkO"
"""The packed heads of Whisper tiny, with 4 layers of 6 heads, from the source of openai-whisper."""

TINY_HEADS = [[2, 2], [3, 0], [3, 2], [3, 3], [3, 4], [3, 5]]
"""Those of its ``generation_config.json`` in transformers."""

SIZES = {"decoder_layers": 4, "decoder_attention_heads": 6}
DAMAGED = "{path} has packed alignment heads that are damaged; copy them again from openai-whisper."


def pack(flags: bytes) -> str:
    return b85encode(gzip.compress(flags)).decode()


@pytest.mark.parametrize(
    "stored",
    [
        {"alignment_heads": TINY, **SIZES},
        {"alignment_heads": TINY, "n_text_layer": 4, "n_text_head": 6},
        {"alignment_heads": TINY, "decoder_layers": 4},
        TINY,
    ],
    ids=["with sizes", "with sizes of openai-whisper", "with half of the sizes", "alone"],
)
def test_packed_heads_are_those_that_transformers_has(tmp_path, stored: object) -> None:
    (tmp_path / "config.json").write_text(json.dumps(SIZES))
    path = tmp_path / "packed.json"
    path.write_text(json.dumps(stored))
    heads = read_heads(path)
    assert json.loads(render_heads(heads, "alignment-heads")) == TINY_HEADS
    assert heads.entries[0].place == "cross 3-3"


@pytest.mark.parametrize(
    ("packed", "sizes", "sentence"),
    [
        (TINY, {}, "{path} has the packed alignment heads of openai-whisper, which are 24 heads without the number of "
         "layers; put the config.json of the model into its folder, or give the generation_config.json of "
         "transformers."),
        (TINY, {"decoder_layers": 6, "decoder_attention_heads": 8}, "{path} has packed alignment heads of 24 heads, "
         "and the configuration has 6 layers of 8 heads; give the two of one model."),
        (TINY[:-5], SIZES, DAMAGED),
        (TINY[:-1] + "\u00e9", SIZES, DAMAGED),
        (pack(bytes([2, *range(23)])), SIZES, DAMAGED),
        (pack(bytes(70_000)), SIZES, DAMAGED),
        (pack(b""), SIZES, DAMAGED),
        (pack(bytes(24)), SIZES, "{path} has no alignment heads; give a list of pairs, such as [[2, 2], [3, 0]]."),
        ("tiny", SIZES, "{path} has no alignment heads; give a list of pairs, such as [[2, 2], [3, 0]]."),
    ],
    ids=[
        "no sizes", "sizes of another model", "cut", "no base85", "no truth values", "more than any model has", "empty",
        "no head", "no packed heads",
    ],
)  # fmt: skip
def test_packed_heads_that_cannot_be_unpacked_are_one_sentence(
    tmp_path, packed: str, sizes: dict, sentence: str
) -> None:
    path = tmp_path / "generation_config.json"
    path.write_text(json.dumps({"alignment_heads": packed, **sizes}))
    with pytest.raises(TableError) as caught:
        read_heads(path)
    assert str(caught.value) == sentence.format(path=path)
