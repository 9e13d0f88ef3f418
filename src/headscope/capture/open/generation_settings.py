"""The settings with which a model generates text, from its ``generation_config.json``."""

from pathlib import Path
from typing import Any

from transformers.utils import cached_file

from headscope.capture.model.model import Model
from headscope.capture.model.unwrap import unwrap
from headscope.capture.open.loading import Loadable, source
from headscope.errors import ModelError, first_line
from headscope.files import parse_json
from headscope.guards.formats import GENERATION, read_bytes

FILE = "generation_config.json"

MADE_UP = "_from_model_config"
"""The mark of settings that transformers derives from the configuration of the model.

With this mark, transformers reads only settings that it knows by name, and ignores added ones, such as heads.
"""


def read_generation_settings(model: Loadable) -> dict[str, Any]:
    """Return the generation settings of a model, by the name of the setting.

    The result is empty if the model has no settings, for example if it has no head that predicts tokens. The mark
    `MADE_UP` is removed, so that transformers also reads settings that are added.

    Raises:
        ModelError: The file of settings is not a JSON object.
    """
    if isinstance(model, str | Path):
        settings = _read_file(str(model))
    else:
        module = model.module if isinstance(model, Model) else model[0] if isinstance(model, tuple) else model
        config = getattr(unwrap(module)[0], "generation_config", None)
        settings = {} if config is None else config.to_diff_dict()
    return {name: value for name, value in settings.items() if name != MADE_UP}


def _read_file(name: str) -> dict[str, Any]:
    where = source(name)
    own = Path(where) / FILE
    path = str(own) if own.exists() else cached_file(
        where, FILE, _raise_exceptions_for_missing_entries=False, _raise_exceptions_for_connection_errors=False,
        _raise_exceptions_for_gated_repo=False,
    )  # fmt: skip
    if path is None:
        return {}
    content = read_bytes(Path(path), GENERATION)
    try:
        settings = parse_json(content)
    except ValueError as error:
        raise ModelError(f"{path} is not JSON ({first_line(error)}); correct it, or remove it.") from error
    if not isinstance(settings, dict):
        raise ModelError(f"{path} does not hold an object of settings; correct it, or remove it.")
    return settings
