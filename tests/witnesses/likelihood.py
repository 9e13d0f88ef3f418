"""Log-probabilities of sentences by plain loops: one sentence at a time, unpadded, token by token, in float64."""

import torch
from transformers import PreTrainedModel, PreTrainedTokenizerFast


def log_probability(module: PreTrainedModel, tokenizer: PreTrainedTokenizerFast, sentence: str) -> tuple[float, int]:
    """The sum over the tokens of the text of log p of each given those before, and how many they are."""
    text = tokenizer(sentence, add_special_tokens=False)["input_ids"]
    start = [] if tokenizer.bos_token_id is None else [tokenizer.bos_token_id]
    total, tokens = 0.0, 0
    for place, token in enumerate(text):
        before = start + text[:place]
        if before:
            total += _predict(module, before)[-1, token].item()
            tokens += 1
    return total, tokens


def pseudo_log_likelihood(
    module: PreTrainedModel, tokenizer: PreTrainedTokenizerFast, sentence: str
) -> tuple[float, int]:
    """The sum over the tokens of the text of log p of each where it is masked, and how many they are."""
    encoded = tokenizer(sentence, return_special_tokens_mask=True)
    ids, special = encoded["input_ids"], encoded["special_tokens_mask"]
    total = 0.0
    for place, token in enumerate(ids):
        if not special[place]:
            masked = [*ids[:place], tokenizer.mask_token_id, *ids[place + 1 :]]
            total += _predict(module, masked)[place, token].item()
    return total, special.count(0)


def _predict(module: PreTrainedModel, ids: list[int]) -> torch.Tensor:
    """The logarithms of the probabilities of all tokens at each place: token x vocabulary."""
    with torch.no_grad():
        return module(torch.tensor([ids])).logits[0].double().log_softmax(-1)
