"""A command as one record: a field is an option on the terminal, a parameter in Python and a part of the request.

    class Align(ModelOptions, Resumable, Request["xr.Dataset"], command="align"):
        top: int | None = option(MEASURED, "Number of heads to write, such as 4.", default=None, at_least=1)

    align = make_function(Align)

The command (`headscope.cli.build`), the function and its docstring (`headscope.commands.function`), the checks, which
use the same sentences in both, the reference page, and what a table records of its own measurement
(`headscope.commands.recorded_request`) follow from it. This module imports nothing heavy: a request is checked before
torch is loaded.
"""

import dataclasses
import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar, cast, dataclass_transform, get_args, get_origin

from headscope.commands.option import (
    OUTPUT,
    Option,
    argument,
    option,
    output_file,
    output_folder,
    read_option,
    reducer_option,
    spell_name,
    table_option,
)
from headscope.commands.progress import Progress, ignore_progress
from headscope.files import explain_refusal

if TYPE_CHECKING:
    from xarray import Dataset

    HeadTable = Dataset
else:
    HeadTable = "xr.Dataset"  # xarray takes half a second to import

R_co = TypeVar("R_co", covariant=True)

_COMPLETE = "_complete"
"""The attribute that marks a request as checked; such a request cannot be changed."""


@dataclass_transform(
    frozen_default=True,
    kw_only_default=True,
    field_specifiers=(option, argument, reducer_option, table_option, output_file, output_folder),
)
class Options:
    """A group of fields that several requests share; a request is composed by inheriting from such groups."""

    options: ClassVar[Mapping[str, Option]]

    def __setattr__(self, name: str, value: Any) -> None:
        """Raise an error if a checked request is changed.

        The methods of a frozen dataclass would do the same, but Python would make them anew for each class.
        """
        if _COMPLETE in self.__dict__:
            raise dataclasses.FrozenInstanceError(f"{name} of a request cannot be changed")
        super().__setattr__(name, value)

    def __init_subclass__(cls, **keywords: Any) -> None:
        """Make the class a dataclass, and set the option of each field."""
        super().__init_subclass__(**keywords)
        # Only requests have an `__init__`: compiling it for each class takes most of the time of an import.
        dataclass(init=hasattr(cls, "__post_init__"), eq=False, repr=False, match_args=False)(cls)
        cls.options = {each.name: read_option(each) for each in dataclasses.fields(cast(Any, cls))}


class Request(Options, Generic[R_co]):
    """A checked request of a user. The type in brackets is the type of the result.

    A subclass in ``headscope.commands.NAME.request`` is run by ``headscope.commands.NAME.run``, which also prints its
    result.

    Attributes:
        command: The name on the terminal; empty for a request that only Python has.
        function: The name of the Python function.
        module: The module in the folder of the request whose function ``run`` runs the request.
        printer: The module in the folder of the request whose function ``show`` prints the result.
        loading: The progress step that is shown while `module` is imported; empty if the import takes no time.
        usage: Examples for the help.
        example: The lines of a Python example, for the docstring and for the error message of a call without an
            argument.
    """

    command: ClassVar[str] = ""
    function: ClassVar[str] = ""
    module: ClassVar[str] = "run"
    printer: ClassVar[str] = "run"
    loading: ClassVar[str] = "loading PyTorch"
    result: ClassVar[Any] = None
    usage: ClassVar[tuple[str, ...]] = ()
    example: ClassVar[tuple[str, ...]] = ()

    progress: Progress | bool | None = option(
        OUTPUT,
        "True shows the progress, False does not; a function is called with the step, how much of it is done, and how "
        "much there is.",
        default=None,
        unset="shown on a terminal and in a notebook",
        on_terminal=False,
        recorded=False,
    )

    def __init_subclass__(
        cls,
        command: str = "",
        function: str = "",
        module: str = "",
        printer: str = "",
        loading: str | None = None,
        **keywords: Any,
    ) -> None:
        """Set the names of the request and the type of its result; names that are not given are inherited."""
        super().__init_subclass__(**keywords)
        cls.command = command
        if function or not cls.function:
            cls.function = function or command
        cls.module, cls.printer = module or cls.module, printer or cls.printer
        cls.loading = cls.loading if loading is None else loading
        bases = getattr(cls, "__orig_bases__", ())
        cls.result = next((get_args(base)[0] for base in bases if get_origin(base) is Request), cls.result)

    def __post_init__(self) -> None:
        """Check and convert each value that is not the default, and mark the request as checked."""
        for each in dataclasses.fields(self):
            value = getattr(self, each.name)
            if value is not each.default:
                setattr(self, each.name, self.options[each.name].check(each.name, value))
        self.__dict__[_COMPLETE] = True

    @classmethod
    def locate(cls, module: str) -> str:
        """Return the full name of a module in the folder of the request."""
        return f"{cls.__module__.rpartition('.')[0]}.{module}"

    @classmethod
    def parse(cls, typed: Mapping[str, Any]) -> "Request[R_co]":
        """Return the request for typed input: a text for each field, or None for an option that was not typed.

        Raises:
            HeadscopeError: A value is not possible.
        """
        return cls(**{name: cls.options[name].parse(name, text) for name, text in typed.items() if text is not None})

    def check(self, progress: Progress) -> None:
        """Raise an error for a request that cannot be run, and read the inputs that need no torch.

        Raises:
            HeadscopeError: The request cannot be run; the message says why in one sentence.
        """

    def run(self, progress: Progress = ignore_progress) -> R_co:
        """Check the request, run it and return its result.

        Raises:
            HeadscopeError: The request cannot be run; the message says why in one sentence.
        """
        try:
            if not self.loading:
                return self._run(progress)
            from headscope.corpora.download import show_downloads  # it takes time to import

            with show_downloads(progress):
                return self._run(progress)
        except OSError as error:
            if refusal := explain_refusal(error):
                raise refusal from error
            raise

    def _run(self, progress: Progress) -> R_co:
        self.check(progress)
        name = self.locate(self.module)
        if self.loading and not {name, "torch"} & sys.modules.keys():
            progress(self.loading, 0, 0)
        return cast(R_co, import_module(name).run(self, progress))


def order_fields(record: type[Options]) -> list["dataclasses.Field[Any]"]:
    """Sort fields as they are shown: positional ones, then the request's own, then those of shared option groups."""
    ranks: dict[str, tuple[bool, int]] = {}
    for depth, cls in enumerate(reversed(record.__mro__)):
        rank = cls.__module__ != record.__module__, -depth
        ranks |= dict.fromkeys(vars(cls).get("__annotations__", ()), rank)
    return sorted(
        dataclasses.fields(cast(Any, record)), key=lambda each: (each.kw_only, each.kw_only and ranks[each.name])
    )


def spell(text: str, record: type[Options]) -> str:
    """Replace the names of fields in a text by the option names that a user types."""
    described = record.options
    return re.sub(
        r"`(\w+)`", lambda name: spell_name(name[1], described[name[1]]) if name[1] in described else name[0], text
    )
