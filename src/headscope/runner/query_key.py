"""The query of one token and the key of another token, which show neuron by neuron why the one attends to the other.

After the neuron view of BertViz (Vig 2019).
"""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from headscope.capture.forward.head_edit import EditedLayer, Z
from headscope.capture.model.model import Model
from headscope.capture.passes.stream import Plan, Stream
from headscope.capture.rows.attention import Attention
from headscope.corpora.document import Document
from headscope.errors import HeadscopeError
from headscope.layers import find_head, refuse_layer


@dataclass(frozen=True)
class QueryKey:
    """The query of one token and the key of another token, in one head.

    Attributes:
        query, key: A number for each neuron, after any rotation.
        products: For each neuron, the product of query and key, times the scale of the head.
        score: The sum of the products. Some models add a bias of distances to this sum, or limit it.
        weight: The attention from the first token to the second token.
    """

    query: tuple[float, ...]
    key: tuple[float, ...]
    products: tuple[float, ...]
    score: float
    weight: float


def read_query_key(
    model: Model, document: Document, head: str, source: int, target: int, plan: Plan | None = None, *,
    attention_type: str = "",
) -> QueryKey:  # fmt: skip
    """Return the query of token `source` and the key of token `target`, in one head.

    Tokens are counted from 0, special tokens included. An empty attention type means the first one of the model.

    Raises:
        HeadscopeError: The attention type, head or token does not exist, or the model cannot read the text.
        ModelError: The queries of the model cannot be reached.
    """
    attention_type = attention_type or next(iter(model.layers))
    if attention_type not in model.layers:
        raise HeadscopeError(f"there is no {attention_type!r} attention; the model has {', '.join(model.layers)}.")
    number, row = find_head(head, model.layers[attention_type], model.shape.heads[attention_type])
    refuse_layer(model.shape.without_attention, number)
    place = (attention_type, number)
    weights: list[Float[Tensor, "query key"]] = []
    answers: list[QueryKey] = []

    def observe(attention: Attention) -> None:
        if (attention.attention_type, attention.layer) == place:
            weights.append(attention.weights()[0, row - 1])

    def record(z: Z, layer: EditedLayer) -> Z:
        if (layer.attention_type, layer.layer) == place:
            answers.append(_read(layer, row - 1, source, target, weights[0]))
        return z

    for portion in Stream([document], (model,), plan or Plan()):
        for batch, capture in zip(portion.batches, portion.captures, strict=True):
            sides = batch.queries(attention_type), batch.keys(attention_type)
            queries, keys = (int(side.real[0].sum()) for side in sides)
            if not (0 <= source < queries and 0 <= target < keys):
                raise HeadscopeError(
                    f"tokens {source} and {target} were named, and {queries} tokens attend to {keys}, counted from 0."
                )
            capture.run(batch, observe, record, whole=True)
    if not answers:
        raise HeadscopeError(f"{model.name} cannot read this text; give another.")
    return answers[0]


def _read(layer: EditedLayer, head: int, source: int, target: int, weights: Float[Tensor, "query key"]) -> QueryKey:
    query = layer.queries[0, head, source].detach().double()
    key = layer.keys_of(torch.tensor([head], device=query.device))[0, 0, target].detach().double()
    products = query * key * layer.scale
    return QueryKey(
        tuple(query.tolist()), tuple(key.tolist()), tuple(products.tolist()), float(products.sum()),
        float(weights[source, target]),
    )  # fmt: skip
