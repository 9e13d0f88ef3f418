"""What a mask lets a query see, against the masks that transformers makes itself."""

import pytest
import torch
from transformers import masking_utils as hf

from headscope.capture.model import mask
from headscope.capture.model.mask import Masks

CPU = torch.device("cpu")
TOKENS, TEXTS = 13, 3
LENGTHS = (13, 7, 2)
PADDING = torch.arange(TOKENS) < torch.tensor(LENGTHS)[:, None]
ROWS = torch.arange(TOKENS)

KNOWN = {
    "all": (hf.bidirectional_mask_function, (None, None)),
    "causal": (hf.causal_mask_function, (None, 0)),
    "causal window": (hf.sliding_window_causal_mask_function(5), (4, 0)),
    "window": (hf.sliding_window_bidirectional_mask_function(5), (5, 5)),
    "window as long as the text": (hf.sliding_window_causal_mask_function(TOKENS), (None, 0)),
    "window of one": (hf.sliding_window_causal_mask_function(1), (0, 0)),
}
UNKNOWN = {
    "chunks": hf.chunked_causal_mask_function(5, torch.zeros(TEXTS, dtype=torch.long)),
    "either of two": hf.or_masks(hf.sliding_window_overlay(5), hf.causal_mask_function),
    "window and more": hf.and_masks(hf.sliding_window_overlay(5), hf.causal_mask_function, hf.causal_mask_function),
    "window of another": hf.and_masks(hf.sliding_window_overlay(5), hf.bidirectional_mask_function),
    "packed texts": hf.packed_sequence_mask_function(torch.zeros(TEXTS, TOKENS)),
    "somebody's own": lambda b, h, q, k: k <= q + 2,
}


def arguments(mask_function, padding):
    sizes = {"batch_size": TEXTS, "q_length": TOKENS, "kv_length": TOKENS, "q_offset": 0}
    return {**sizes, "mask_function": mask_function, "attention_mask": padding}


@pytest.mark.parametrize("padding", [None, PADDING], ids=["no padding", "padding"])
@pytest.mark.parametrize("kind", KNOWN)
def test_reach_is_what_transformers_would_have_made(kind: str, padding) -> None:
    mask_function, window = KNOWN[kind]
    masks = Masks()
    reach = masks.reach(masks.keep(arguments(mask_function, padding)), CPU)
    assert reach is not None
    assert (reach.before, reach.after) == window
    expected = hf.sdpa_mask(**arguments(mask_function, padding), allow_is_causal_skip=False)
    wanted = (
        torch.ones(TEXTS, TOKENS, TOKENS, dtype=torch.bool)
        if expected is None
        else expected[:, 0].expand(TEXTS, -1, -1)
    )
    real = PADDING if padding is not None else torch.ones_like(PADDING)
    seen = reach.sees(ROWS, ROWS).expand(TEXTS, -1, -1)
    # Rows of padding are never counted, and may see what they like.
    torch.testing.assert_close(seen[real], wanted[real])
    for start in range(0, TOKENS, 3):
        rows = slice(start, min(start + 3, TOKENS))
        keys = reach.keys(rows, TOKENS)
        outside = torch.ones(TOKENS, dtype=torch.bool)
        outside[keys] = False
        assert not bool(seen[:, rows][:, :, outside].any())


@pytest.mark.parametrize("kind", UNKNOWN)
def test_what_is_not_known_is_not_guessed(kind: str) -> None:
    masks = Masks()
    ticket = masks.keep(arguments(UNKNOWN[kind], None))
    assert masks.reach(ticket, CPU) is None
    block, allowed = masks.block(ticket, slice(3, 7), slice(0, TOKENS), torch.zeros(TEXTS, 1, TOKENS, 1), TOKENS)
    wanted = hf.sdpa_mask(**arguments(UNKNOWN[kind], None), allow_is_causal_skip=False)[:, :, 3:7]
    torch.testing.assert_close(block == 0, wanted.expand_as(block))
    torch.testing.assert_close(allowed, wanted[:, 0].sum(-1).float().expand(TEXTS, -1))


def test_a_mask_that_a_model_made_is_not_known_either() -> None:
    assert Masks().reach(torch.zeros(TEXTS, 1, TOKENS, TOKENS), CPU) is None


@pytest.mark.parametrize("wrong", [(None, None), (None, 0), (6, 0), (5, 5)])
def test_in_a_long_text_what_is_thought_of_a_mask_is_compared_with_the_mask(wrong, monkeypatch) -> None:
    """A run is verified on short texts, in which a long window is none."""
    length = mask.CHECKED_FROM + 3
    sizes = {"batch_size": TEXTS, "q_length": length, "kv_length": length}
    padding = torch.arange(length) < torch.tensor([length, 7, 2])[:, None]
    for given in (None, padding):
        asked = arguments(KNOWN["causal window"][0], given) | sizes
        assert Masks().reach(Masks().keep(asked), CPU) is None  # of another pass
        masks = Masks()
        assert masks.reach(masks.keep(asked), CPU) is not None
        with monkeypatch.context() as patched:
            patched.setattr(mask, "_find_window", lambda _: wrong)
            assert masks.reach(masks.keep(asked), CPU) is None
