"""headscope: what each attention head of a transformer looks at, which relation it marks, and how sure we are.

The commands are functions too, with the same defaults: `atlas`, `measure`, `compare`, `study` and `tune`. Functions
that compute further variables of a head table are in `headscope.analyse`. A head table is an `xarray.Dataset` over
layers and heads. `dir(headscope)` lists the public names.

>>> import headscope
>>> table = headscope.measure("minilm", "grammar:211", ["surface"])  # doctest: +SKIP
>>> float(table.mass_previous.sel(layer=1, head=3))  # doctest: +SKIP
"""

from pathlib import Path

import lazy_loader

# Each name is loaded when it is first used: reading or drawing a table must not load torch.
_load, _, _names = lazy_loader.attach_stub(__name__, __file__)
__all__ = [name for name in _names if not (Path(__file__).parent / name).is_dir()]  # without submodules


def __dir__() -> list[str]:
    """Return the public names of headscope, without its submodules, which few users need."""
    return [*__all__]


def __getattr__(name: str) -> object:
    """Return the object with a public name, which is loaded at its first use; ``__version__`` is the package's version.

    Raises:
        AttributeError: the name is unknown. The message suggests a public name if one has the purpose or spelling.
    """
    if name == "__version__":
        from importlib.metadata import version

        return version("headscope")
    if name in _names or name.startswith("_"):
        return _load(name)
    from headscope.first_guesses import explain_attribute

    raise AttributeError(explain_attribute(name, __all__))


del Path, lazy_loader
