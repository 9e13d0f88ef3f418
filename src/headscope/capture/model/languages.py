"""Sets the languages of a multilingual tokenizer, which adds a language token to a text and to its translation."""

import copy
from dataclasses import replace

from headscope.capture.model.model import Model
from headscope.errors import ModelError, quote

ATTRIBUTES = {"source": "src_lang", "target": "tgt_lang"}
"""The attribute of a multilingual tokenizer that holds the language of each side."""


def set_languages(model: Model, *, source: str | None = None, target: str | None = None) -> Model:
    """Return a model whose tokenizer reads texts in the language `source`, and translations in `target`.

    The tokenizer is a copy. If neither language is given, `model` itself is returned.

    Raises:
        ModelError: The tokenizer has no languages, or does not know a given language, or is multilingual and the
            language of the translation is missing.
    """
    named = {side: language for side, language in (("source", source), ("target", target)) if language is not None}
    tokenizer = model.tokenizer
    kind = f"the tokenizer of {model.name!r} ({type(tokenizer).__name__})"
    for side, language in named.items():
        if not hasattr(tokenizer, ATTRIBUTES[side]):
            raise ModelError(
                f"{kind} is of one language alone, so it has no {side} language {quote(language)}; leave it out."
            )
        if language not in tokenizer.get_vocab():
            raise ModelError(
                f"{kind} has no token {quote(language)} for the {side} language; name it as the tokenizer does, such "
                "as eng_Latn (NLLB) or en_XX (mBART)."
            )
    if hasattr(tokenizer, ATTRIBUTES["target"]) and not (target or tokenizer.tgt_lang):
        raise ModelError(
            f"{kind} is of several languages, and that of the translation is not known; name it as the tokenizer does, "
            "such as --target fra_Latn."
        )
    if not named:
        return model
    tokenizer = copy.deepcopy(tokenizer)
    for side, language in named.items():
        setattr(tokenizer, ATTRIBUTES[side], language)
    return replace(model, tokenizer=tokenizer)
