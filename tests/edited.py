"""What the tests of changed heads share: tiny models, their inputs and their hidden states."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch

import tiny
from headscope.capture.model.model import Model
from headscope.capture.tokens.align import Alignment
from headscope.capture.tokens.batch import Batch, collate
from headscope.corpora.document import Document

DOCUMENTS = tiny.documents(7)


@dataclass(frozen=True)
class Subject:
    """A tiny model of a family, and documents as its input.

    Attributes:
        kind: the attention type whose heads are changed, the last that the model has.
        prefix: stands before the names of heads.
    """

    family: str
    model: Model
    batch: Batch
    kind: str
    prefix: str

    @property
    def last_layer(self) -> int:
        return self.model.layers[self.kind]

    def run(self) -> torch.Tensor:
        """The last hidden states of tokens, without padding."""
        with torch.no_grad():
            hidden = self.model.module(**self.batch.inputs).last_hidden_state
        return hidden[(self.batch.decoder or self.batch.encoder).real]

    def name(self, name: str) -> str:
        return f"{self.prefix}{name}"


def make(family: str, implementation: str = "eager", documents: Sequence[Document] = DOCUMENTS) -> Subject:
    module, tokenizer = tiny.make(family)
    module.set_attn_implementation(implementation)
    model = Model.from_module(module, tokenizer, name=family)
    kind = list(model.layers)[-1]
    return Subject(family, model, read(model, documents), kind, f"{kind} " if len(model.layers) > 1 else "")


def read(model: Model, documents: Sequence[Document]) -> Batch:
    """The documents as one batch, each longer one cut."""
    return collate(model, Alignment.for_model(model, cut=True).align(documents)[0])


def agree(values: torch.Tensor, expected: torch.Tensor, *, to: float = 1e-6) -> None:
    """The values differ by at most so much of the largest."""
    torch.testing.assert_close(values, expected, atol=to * max(1.0, float(expected.abs().max())), rtol=0)
