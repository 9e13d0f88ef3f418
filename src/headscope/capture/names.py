"""The names of models, for whoever asks before there is anything to load. No torch here."""

from pathlib import Path

from headscope.errors import ModelError


def check_name(name: str) -> None:
    """Refuse a path at which there is no folder; whether there is a model is seen when it is loaded.

    Raises:
        ModelError: it begins as no hub id does, and there is no such folder.
    """
    if name.startswith((".", "/")) and not Path(name).is_dir():
        raise ModelError(
            f"there is no folder {name!r}; "
            "give a hub id, a folder with config.json, weights and tokenizer, or `minilm`."
        )
