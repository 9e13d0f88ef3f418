"""The settings of training."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from headscope.capture.model.device_names import AUTO, DTYPES
from headscope.errors import HeadscopeError
from headscope.learn.task import TEST, VALIDATION

PRECISIONS = DTYPES
"""The number formats for training; all but the first are used in mixed precision with the first."""

SELECT = (VALIDATION, TEST)
"""The splits on which the best epoch can be chosen."""

LEAST_TOKENS = 5
"""The minimum limit of tokens of an example: a pair of words and three special tokens."""


@dataclass(frozen=True)
class Settings:
    """The settings of training.

    Attributes:
        epochs: The number of passes over all training examples. The learning rate falls linearly to 0 over them.
        learning_rate: The learning rate of AdamW at the first step.
        batch_size: The number of examples in a step, on each device.
        precision: One of `PRECISIONS`.
        device: ``auto``, ``cpu``, or ``cuda`` for all visible GPUs.
        max_tokens: The maximum number of tokens of an example, including special tokens; longer examples are cut, and
            counted. None: the limit of the model.
        select: The split on which the best epoch is chosen, one of `SELECT`. With ``test``, which makes scores slightly
            too good, the model is also trained on the validation split (Zhao and Bethard 2020, section 5.2).
        max_examples: The size of a random sample of the training examples; None: all examples.

    Raises:
        HeadscopeError: A setting has a value with which nothing can be trained.
    """

    epochs: int = 8
    learning_rate: float = 4e-5
    batch_size: int = 16
    precision: str = "float32"
    device: str = AUTO
    max_tokens: int | None = None
    select: str = VALIDATION
    max_examples: int | None = None

    def __post_init__(self) -> None:
        if self.max_tokens is not None and self.max_tokens < LEAST_TOKENS:
            raise HeadscopeError(f"{self.max_tokens} tokens leave no room for an example; give {LEAST_TOKENS} or more.")
        if self.select not in SELECT:
            raise HeadscopeError(f"an epoch cannot be chosen on {self.select!r}; choose it on {' or '.join(SELECT)}.")
        if self.max_examples is not None and self.max_examples < 1:
            raise HeadscopeError(f"{self.max_examples} training examples are too few to train on; give 1 or more.")
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


def check_seeds(seeds: Sequence[int]) -> None:
    """Raise an error if there are no seeds, if a seed is repeated, or if a seed is not from 0 to 2**32 - 1."""
    if not seeds:
        raise HeadscopeError("there is no seed, and so no run; give at least one.")
    if repeated := [seed for seed, count in Counter(seeds).items() if count > 1]:
        raise HeadscopeError(f"the seed {repeated[0]} is given more than once; runs differ in their seeds.")
    if min(seeds) < 0 or max(seeds) >= 2**32:
        raise HeadscopeError(f"the seeds {min(seeds)} to {max(seeds)} are not all from 0 to {2**32 - 1}; give others.")
