"""The settings of training."""

from dataclasses import dataclass

from headscope.errors import HeadscopeError

PRECISIONS = ("float32", "bfloat16", "float16")
"""The number formats for training; the last two are mixed with the first."""


@dataclass(frozen=True)
class Settings:
    """The settings of training.

    Attributes:
        epochs: passes over all training examples. The learning rate falls linearly to 0 over them.
        learning_rate: of AdamW at the first step.
        batch_size: examples of a step, on each device.
        precision: one of `PRECISIONS`.
        device: ``cpu``, or ``cuda`` for all GPUs that are visible.

    Raises:
        HeadscopeError: nothing can be trained with a value.
    """

    epochs: int
    learning_rate: float
    batch_size: int
    precision: str
    device: str

    def __post_init__(self) -> None:
        if self.epochs < 1:
            raise HeadscopeError(f"{self.epochs} epochs train nothing; give 1 or more.")
        if self.batch_size < 1:
            raise HeadscopeError(f"a batch of {self.batch_size} examples trains nothing; give 1 or more.")
        if not 0 < self.learning_rate < float("inf"):
            raise HeadscopeError(f"the learning rate {self.learning_rate} is not above 0; give one such as 4e-5.")
        if self.precision not in PRECISIONS:
            raise HeadscopeError(f"there is no precision {self.precision!r}; there are {', '.join(PRECISIONS)}.")
        if ":" in self.device:
            raise HeadscopeError(
                f"the device {self.device!r} names one GPU, and tuning uses all visible ones; give cuda, and choose "
                f"the GPU by the environment: CUDA_VISIBLE_DEVICES={self.device.partition(':')[2]}."
            )
