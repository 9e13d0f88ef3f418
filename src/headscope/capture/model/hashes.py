"""Hashes of a configuration and of a tokenizer, over all settings that change what a model computes on a text."""

import hashlib
import json
from typing import Any

from transformers import PreTrainedConfig, PreTrainedTokenizerBase

IDLE = frozenset({
    "_name_or_path", "transformers_version", "architectures", "dtype", "torch_dtype", "_attn_implementation",
    "_attn_implementation_internal", "attn_implementation", "_commit_hash", "use_cache", "return_dict",
    "output_attentions", "output_hidden_states", "id2label", "label2id", "problem_type", "auto_map",
})  # fmt: skip
"""Fields of a configuration that do not change attention."""


def hash_config(config: PreTrainedConfig) -> str:
    """Return the SHA-256 of a configuration and its parts, without the fields in `IDLE`."""
    return _hash(_drop_idle(config.to_dict()))


def hash_tokenizer(tokenizer: PreTrainedTokenizerBase) -> str:
    """Return the SHA-256 of a tokenizer in memory: how it divides texts, and which tokens it puts around them."""
    serialized = tokenizer.backend_tokenizer.to_str()
    # The part before it says how the last batch was truncated and padded.
    _, _, division = serialized.partition('"added_tokens"')
    settings = {
        "class": type(tokenizer).__name__, "special": tokenizer.special_tokens_map,
        "limit": tokenizer.model_max_length, "inputs": tokenizer.model_input_names,
        "template": tokenizer.chat_template,
    }  # fmt: skip
    return _hash([division or serialized, settings])


def _drop_idle(settings: Any) -> Any:
    if isinstance(settings, dict):
        return {str(name): _drop_idle(value) for name, value in settings.items() if name not in IDLE}
    return [_drop_idle(each) for each in settings] if isinstance(settings, list | tuple) else settings


def _hash(content: Any) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True, default=str).encode()).hexdigest()
