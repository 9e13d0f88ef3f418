"""What a loss depends on, against autograd through the model's own eager attention; planted; and whatever the batch."""

from collections.abc import Sequence
from functools import cache

import numpy as np
import pytest
import torch
import transformers as hf
import xarray as xr
from hypothesis import given, settings
from hypothesis import strategies as st
from matplotlib.legend import Legend
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

import headed
import laws
import planted
import tiny
import witnesses
from headscope.analyse import list_highest
from headscope.capture.forward.head_edit import EditedLayer
from headscope.capture.forward.interface import Capture
from headscope.capture.forward.loss import choose_masked, make_loss
from headscope.capture.model.block_sizes import BlockSizes
from headscope.capture.model.model import Model
from headscope.capture.tokens.align import Alignment
from headscope.capture.tokens.batch import collate
from headscope.corpora import Document
from headscope.errors import TableError
from headscope.reducers import Gradients, Surface
from headscope.reducers.surface import VARIABLES
from headscope.runner import Plan, measure
from headscope.runner.checkpoint import RunSums
from headscope.view.figures.draw_layers import draw_gradients

DOCUMENTS = tiny.documents(11)
REDUCERS = (Surface(), Gradients())
SURFACE = {*VARIABLES, "mass_distance"}
SUPPORTED = [head for head in headed.HEADS if head not in {("bert", "causal-lm"), ("bart", "masked-lm")}]
SUPPORTED.remove(("mpnet", "masked-lm"))
HEAD = pytest.mark.parametrize(("family", "task"), SUPPORTED)
EXACT = 1e-6
"""Of the largest gradient of a variable, in float64; some losses of transformers are float32."""


@cache
def load(family: str, task: str, dtype: torch.dtype = torch.float64, spread: float = 1.0) -> Model:
    return Model.from_module(*headed.make(family, task, dtype=dtype, spread=spread), name=family)


ROUNDING = 1e-5
"""The same in float32, where it grows from layer to layer."""


def find_masked(model: Model, document: Document) -> list[int]:
    """The places of the tokens that are masked, each text alone."""
    ((text,), _) = Alignment.for_model(model).align([document])
    return choose_masked(text.ids, [place for place, word in enumerate(text.word) if word >= 0])


def of_attention_type(table: xr.Dataset, attention_type: str) -> xr.Dataset:
    if "attention_type" not in table.dims:
        return table
    return table.sel(attention_type=attention_type).dropna("layer", how="all", subset=["head_gate"])


def assert_close(ours: np.ndarray, theirs: np.ndarray, share: float, name: str) -> None:
    np.testing.assert_allclose(ours, theirs, atol=share * np.nanmax(np.abs(theirs)), rtol=0, err_msg=name)


@cache
def witness(family: str, task: str) -> dict[str, dict[str, np.ndarray]]:
    """The variables of each attention type, by autograd."""
    body, tokenizer = tiny.make(family)
    seen = [witnesses.see(body, tokenizer, document) for document in DOCUMENTS]
    masked = [find_masked(load(family, task), document) if task == "masked-lm" else [] for document in DOCUMENTS]
    exact, _ = headed.make(family, task, dtype=torch.float64)
    return witnesses.gradients(exact, tokenizer, task, seen, masked)


@HEAD
@pytest.mark.parametrize("plan", [Plan(), Plan(batch_tokens=1, rows=3)], ids=["batched", "alone, 3 rows"])
def test_gradients(family: str, task: str, plan: Plan) -> None:
    expected = witness(family, task)
    # The masks of ModernBERT overflow in float64, in rows of padding.
    dtype, share = (torch.float32, ROUNDING) if family == "modernbert" else (torch.float64, EXACT)
    table = measure(load(family, task, dtype), DOCUMENTS, ["gradients"], plan=plan)
    assert table.attrs["loss"] == task
    assert set(expected) == set(load(family, task).layers)
    for attention_type, variables in expected.items():
        ours = of_attention_type(table, attention_type)
        assert {name for name in ours.data_vars if ours[name].notnull().any()} == set(variables)
        for name, theirs in variables.items():
            assert theirs.max() > 0
            assert_close(ours[name].values, theirs, share, f"{attention_type} {name}")


PLANS = pytest.mark.parametrize("plan", [Plan(batch_tokens=1), Plan(batch_tokens=47, fused=True), Plan(rows=3)])


@cache
def measure_exactly(family: str, task: str) -> xr.Dataset:
    return measure(load(family, task, torch.float64, 0.25), DOCUMENTS, ["gradients"], plan=Plan(batch_tokens=1))


@PLANS
@pytest.mark.parametrize("family", ["bert", "llama", "modernbert"])
def test_in_float32_with_and_without_the_matrix(family: str, plan: Plan) -> None:
    task = "causal-lm" if family == "llama" else "masked-lm"
    exact = measure_exactly(family, task)
    ours = measure(load(family, task, torch.float32, 0.25), DOCUMENTS, ["gradients"], plan=plan)
    assert ("without the matrix" in ours.attrs["paths"]) == bool(plan.fused)
    for name in exact.data_vars:
        if exact[name].notnull().any():
            assert_close(ours[name].values, exact[name].values, ROUNDING, str(name))


LAWS = pytest.mark.parametrize(
    ("family", "task"), [("bert", "masked-lm"), ("mistral", "causal-lm"), ("bart", "causal-lm"), ("bert", "tagging")]
)


def add_up(family: str, task: str, documents: Sequence[Document], plan: Plan) -> RunSums:
    """With others, which see the text without masks."""
    return laws.add_up(load(family, task), documents, REDUCERS, plan)


@cache
def expected(family: str, task: str) -> xr.Dataset:
    """One document after the other, each alone and unpadded."""
    done = RunSums({})
    for document in DOCUMENTS:
        done = done + add_up(family, task, [document], Plan())
    return laws.tabulate_sums(done, load(family, task), REDUCERS)


@LAWS
@settings(max_examples=7, deadline=None)
@given(plan=laws.PLANS, order=st.permutations(range(len(DOCUMENTS))), cut=st.integers(1, len(DOCUMENTS) - 1))
def test_any_split_order_padding_batch_and_block(family: str, task: str, plan: Plan, order: list, cut: int) -> None:
    permuted = [DOCUMENTS[place] for place in order]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(BlockSizes, "measure", lambda device: BlockSizes(swept=97 * cut))
        done = add_up(family, task, permuted[cut:], plan) + add_up(family, task, permuted[:cut], plan)
    ours, theirs = laws.tabulate_sums(done, load(family, task), REDUCERS), expected(family, task)
    assert set(ours.data_vars) == set(theirs.data_vars)
    # The norms of Mistral are float32 in any model.
    share = ROUNDING if family == "mistral" else 1e-9
    for name, values in theirs.data_vars.items():
        if values.notnull().any():
            assert_close(ours[name].values, values.values, ROUNDING if name in SURFACE else share, str(name))


def test_other_reducers_see_the_text_without_masks() -> None:
    model = load("bert", "masked-lm")
    alone, beside = (measure(model, DOCUMENTS, reducers) for reducers in (["surface"], ["surface", "gradients"]))
    for name, values in alone.data_vars.items():
        np.testing.assert_array_equal(beside[name], values, err_msg=str(name))
    assert beside.attrs["paths"] == alone.attrs["paths"]


def test_one_weight_moves_the_loss_as_its_gradient_says() -> None:
    """A step along one weight, put into z by an edit: two losses, one on each side, and no backward pass."""
    model, (layer, head, query, key), step = load("gpt2", "causal-lm"), (1, 4, 7, 2), 1e-4
    batch = collate(model, Alignment.for_model(model).align(DOCUMENTS[:1])[0])
    capture, (_, loss) = Capture.verified(model, batch), make_loss(model, batch)
    losses = []

    def move(size: float) -> float:
        def edit(z: torch.Tensor, edited: EditedLayer) -> torch.Tensor:
            if edited.layer == layer:
                z = z.clone()
                z[0, head, query] += size * edited.values_of(torch.tensor([head]))[0, 0, key]
            return z

        def record(output) -> torch.Tensor:
            losses.append(float(loss(output).detach()))
            return loss(output)

        capture.run(batch, edit=edit, gradients=True, loss=record)
        return losses[-1]

    gradient = capture.run(batch, gradients=True, loss=loss).gradients["decoder", layer]
    by_weight = float(gradient.by_weight(slice(query, query + 1))[0, head, 0, key])
    assert abs(by_weight) > 1e-3
    assert (move(step) - move(-step)) / (2 * step) == pytest.approx(by_weight, rel=1e-6)


def plant_separator(layer: int, head: int) -> Model:
    """A tagger that reads of all attention how much one head gives to [SEP]: no value of another token is not 0."""
    body = planted.plant({}).module
    config = body.config
    config.num_labels = 3
    module = hf.BertForTokenClassification(config)
    module.bert.load_state_dict(body.state_dict())
    attention = module.bert.encoder.layer[layer - 1].attention
    row, free = (head - 1) * planted.SIZE, config.hidden_size - 1
    with torch.no_grad():
        attention.self.value.weight[row, planted.SIZE + planted.WORDS.index("[SEP]")] = 1
        attention.output.dense.weight[free, row] = 1
        module.classifier.weight.zero_()
        module.classifier.weight[1, free] = 1
    return Model.from_module(module, planted.tokenizer(), name="planted")


def test_a_head_whose_attention_to_sep_decides_is_first() -> None:
    table = measure(plant_separator(2, 3), planted.documents(13), ["gradients"])
    read = {f"gradient_{kind}" for kind in ("sep", "all", "sum_sep", "sum_all")} | {"head_gate"}
    least = {name: float(table[name].sel(layer=2, head=3)) for name in read}
    assert min(least.values()) > 1e-3
    for name in read:
        assert list_highest(table, name)[0] == ("2-3", least[name])
        assert float(table[name].sum()) == least[name]
    for name in set(table.data_vars) - read:  # layer norms leave a little of their own
        assert float(table[name].max()) < 1e-6 * least["gradient_sep"]


@pytest.mark.parametrize(
    ("family", "task", "labels"),
    [
        ("bert", "masked-lm", ["[CLS]", "[SEP]", "“.” and “,”", "other tokens"]),
        ("llama", "causal-lm", ["first token", "“.” and “,”", "other tokens"]),
    ],
)
def test_the_figure_has_the_mean_of_each_layer_for_each_class(family: str, task: str, labels: list[str]) -> None:
    table = measure(load(family, task), DOCUMENTS, ["gradients"])
    figure = draw_gradients(table)
    assert [text.get_text() for legend in figure.findobj(Legend) for text in legend.get_texts()] == labels
    lines = {line.get_gid(): line.get_ydata() for axes in figure.axes for line in axes.lines if line.get_gid()}
    np.testing.assert_array_equal(lines["gradient_other-mean"], table["gradient_other"].mean("head"))


def test_there_is_no_figure_without_gradients() -> None:
    with pytest.raises(TableError) as refused:
        draw_gradients(measure(load("bert", "masked-lm"), DOCUMENTS, ["surface"]))
    assert str(refused.value) == (
        "the head table has none of gradient_cls, gradient_first, gradient_sep, gradient_punctuation, gradient_other; "
        "measure the gradients of the loss first."
    )


class Sizes(TorchDispatchMode):
    """Notes the largest tensor that any operation gives, forwards and backwards."""

    def __init__(self) -> None:
        super().__init__()
        self.largest = 0

    def __torch_dispatch__(self, function, types, arguments=(), terms=None):
        output = function(*arguments, **(terms or {}))
        tensors = [part for part in tree_leaves(output) if isinstance(part, torch.Tensor)]
        self.largest = max([self.largest, *(tensor.numel() for tensor in tensors)])
        return output


@pytest.mark.full
def test_nothing_of_size_query_times_key_is_made_for_a_long_text() -> None:
    length = 8192
    body, tokenizer = tiny.make("llama")
    body.config.update({"num_hidden_layers": 1, "max_position_embeddings": length})
    tokenizer.model_max_length = length
    model = Model.from_module(hf.LlamaForCausalLM(body.config), tokenizer, name="long")
    document = Document("long", ("dog", "sees", "the", ".") * (length // 4 - 1))
    ((text,), _) = Alignment.for_model(model).align([document])
    assert 0.9 * length < len(text.ids) <= length
    with Sizes() as sizes:
        table = measure(model, [document], ["gradients"])
    assert float(table["gradient_all"].min()) > 0
    assert "without the matrix" in table.attrs["paths"]
    assert sizes.largest < len(text.ids) ** 2 / 16
    with sizes:
        torch.ones(length, 1) @ torch.ones(1, length)
    assert sizes.largest == length**2
