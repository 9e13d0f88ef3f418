"""The operations that torch dispatches."""

from collections import Counter
from collections.abc import Callable
from typing import Any

import torch.utils._python_dispatch as dispatch


class Operations(dispatch.TorchDispatchMode):
    """Counts what is dispatched, by name."""

    def __init__(self) -> None:
        super().__init__()
        self.names: Counter[str] = Counter()

    @property
    def count(self) -> int:
        return self.names.total()

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.names[function.overloadpacket.__name__] += 1
        return function(*args, **(kwargs or {}))


class Uncounted:
    """A kernel of Triton's whose interpreter dispatches what a GPU would not."""

    def __init__(self, kernel: Any) -> None:
        self.kernel = kernel

    def __getitem__(self, grid: Any) -> Callable[..., None]:
        def launch(*arguments: Any, **constants: Any) -> None:
            with dispatch._disable_current_modes():
                self.kernel[grid](*arguments, **constants)

        return launch
