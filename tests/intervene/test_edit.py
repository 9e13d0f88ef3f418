"""Each way to change heads against the same by hand, in every family with the interface."""

import re
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from itertools import product

import pytest
import torch

import tiny
from edited import DOCUMENTS, Subject, agree, make, read
from headscope.corpora.document import Document
from headscope.intervene import edit
from projections import order_of_calls, replaced

FAMILIES = pytest.mark.parametrize("family", tiny.FAMILIES)
HEAD = 3  # the fourth
SHORT = [DOCUMENTS[place] for place in (0, 2, 4)]  # 13, 7 and 5 words


def by_hand(subject: Subject, change, layer: int = 2, head: int = HEAD):
    """A head of a layer of the subject, changed before its output projection."""
    call = order_of_calls(subject.model).index((subject.kind, layer))
    return replaced(subject.model, subject.family, call, head, change)


def outputs_of(subject: Subject, documents: Sequence[Document]) -> list[torch.Tensor]:
    """What the head of layer 2 gives for some documents, run at once: for each a row for each token."""
    outputs: list[torch.Tensor] = []
    batch = read(subject.model, documents)
    with torch.no_grad(), by_hand(subject, lambda z: outputs.extend(z.clone()) or z):
        subject.model.module(**batch.inputs)
    return [z[real] for z, real in zip(outputs, batch.queries(subject.kind).real, strict=True)]


def outputs_alone(subject: Subject) -> list[torch.Tensor]:
    """The same for a few documents, each run without padding."""
    return [output for document in SHORT for output in outputs_of(subject, [document])]


@pytest.mark.parametrize(
    ("family", "implementation"),
    # The last two have terms that `sdpa` has not, and transformers refuses it.
    [*product(tiny.FAMILIES, ["eager"]), *product(sorted({*tiny.FAMILIES} - {"gemma2", "gpt_oss"}), ["sdpa"])],
)
def test_an_edit_that_changes_nothing_changes_no_bit(family: str, implementation: str) -> None:
    subject = make(family, implementation)
    before, calls = subject.run(), []
    with edit.capture_model(subject.model).editing(lambda z, layer: calls.append(layer.layer) or z):
        assert torch.equal(subject.run(), before)
    assert len(calls) == sum(subject.model.layers.values())


@FAMILIES
def test_zero_is_an_empty_slice_of_the_projections_input(family: str) -> None:
    subject = make(family)
    with edit.zero(subject.model, subject.name("2-4")):
        edited = subject.run()
    with by_hand(subject, torch.zeros_like):
        agree(edited, subject.run())


@FAMILIES
def test_the_mean_is_that_of_the_documents_one_by_one(family: str) -> None:
    subject = make(family)
    mean = torch.cat(outputs_alone(subject)).double().mean(0).float()
    with edit.mean(subject.model, subject.name("2-4"), SHORT):
        edited = subject.run()
    with by_hand(subject, lambda z: mean.expand_as(z)):
        agree(edited, subject.run())


@FAMILIES
def test_the_mean_by_position_is_pooled_where_no_document_reaches(family: str) -> None:
    subject = make(family)
    alone = outputs_alone(subject)
    means = torch.cat(alone).double().mean(0).float().repeat(subject.batch.queries(subject.kind).length, 1)
    for place in range(max(map(len, alone))):
        means[place] = torch.stack([z[place] for z in alone if place < len(z)]).double().mean(0).float()
    assert max(map(len, alone)) < len(means)
    with edit.mean(subject.model, subject.name("2-4"), SHORT, by_position=True):
        edited = subject.run()
    with by_hand(subject, lambda z: means.expand_as(z)):
        agree(edited, subject.run())


@FAMILIES
def test_resampled_outputs_are_those_of_other_documents(family: str) -> None:
    subject = make(family)
    # In the order in which a corpus is run, the longest first.
    alone = outputs_of(subject, SHORT)
    order = torch.randperm(len(SHORT), generator=torch.Generator().manual_seed(5)).tolist()

    def change(z: torch.Tensor) -> torch.Tensor:
        others = [alone[order[text % len(SHORT)]] for text in range(len(z))]
        return torch.stack([torch.cat([other] * 20)[: z.shape[1]] for other in others])

    with edit.resample(subject.model, subject.name("2-4"), SHORT, seed=5):
        edited = subject.run()
    with by_hand(subject, change):
        agree(edited, subject.run())


@FAMILIES
def test_shuffled_outputs_are_those_of_the_example_before(family: str) -> None:
    subject = make(family)
    tokens, keys = subject.batch.queries(subject.kind), subject.batch.keys(subject.kind)
    lengths = tokens.real.sum(1).tolist()

    def change(z: torch.Tensor) -> torch.Tensor:
        others = []
        for text in range(len(z)):
            other = z[text - 1]
            of_tokens = other[: lengths[text - 1]] if tokens is keys else other
            others.append(torch.cat([of_tokens] * 40)[: z.shape[1]])
        return torch.stack(others)

    with edit.shuffle(subject.model, subject.name("2-4")):
        edited = subject.run()
    with by_hand(subject, change):
        agree(edited, subject.run())


@contextmanager
def looking_at_the_first_layer(subject: Subject) -> Iterator[list[torch.Tensor]]:
    """The output of the head in the first layer of a pass, of tokens without padding."""
    outputs: list[torch.Tensor] = []
    real = subject.batch.queries(order_of_calls(subject.model)[0][0]).real
    with replaced(subject.model, subject.family, 0, HEAD, lambda z: outputs.append(z[real]) or z):
        yield outputs


@FAMILIES
def test_uniform_is_attention_with_scores_of_nothing_but_the_mask(family: str) -> None:
    """The weights that make the scores of one head are set to 0, in all layers."""
    subject = make(family)
    names = [f"{kind} {layer}-4" for kind, layers in subject.model.layers.items() for layer in range(1, layers + 1)]
    with edit.uniform(subject.model, names), looking_at_the_first_layer(subject) as outputs:
        edited = subject.run()
    heads = tiny.FAMILIES[family].heads
    with torch.no_grad():
        for name, weights in subject.model.module.named_parameters():
            if re.search(r"(query|q_lin|q_proj|\.q)\.(weight|bias)$", name):
                weights.unflatten(0, (heads, -1))[HEAD] = 0
            elif re.search(r"relative_attention_bias", name):
                weights[:, HEAD] = 0
            elif re.search(r"(Wqkv|c_attn)\.(weight|bias)$", name):
                part = weights if weights.ndim == 1 or "Wqkv" in name else weights.T
                part[: part.shape[0] // 3].unflatten(0, (heads, -1))[HEAD] = 0
            elif name.endswith("sinks"):
                weights[HEAD] = -1e4
    with looking_at_the_first_layer(subject) as expected:
        agree(edited, subject.run(), to=1e-5)  # behind all layers, each of which enlarges what was rounded before it
    agree(outputs[0], expected[0])


@pytest.mark.parametrize("family", ["bert", "roberta", "albert", "gpt2", "llama", "qwen3", "mistral"])
def test_cut_edges_are_those_of_a_mask(family: str) -> None:
    """All heads, so that the model's own mask can hide the same keys; each query keeps a key in sight."""
    subject = make(family, documents=[DOCUMENTS[0]])
    length, edges = subject.batch.encoder.length, [(5, 2), (5, 3), (1, 0), (7, 7)]
    with edit.cut(subject.model, [str(layer) for layer in range(1, subject.last_layer + 1)], edges):
        edited = subject.run()
    seen = torch.ones(length, length, dtype=torch.bool)
    if subject.kind == "decoder":
        seen = seen.tril()
    if family == "mistral":
        seen = seen.triu(1 - tiny.WINDOW)
    for query, key in edges:
        seen[query, key] = False
    mask = torch.zeros(1, 1, length, length).masked_fill(~seen, torch.finfo(torch.float32).min)
    subject.batch.inputs["attention_mask"] = mask
    agree(edited, subject.run())


@FAMILIES
def test_a_head_that_sees_nothing_has_no_output(family: str) -> None:
    subject = make(family)
    queries, keys = (side(subject.kind).length for side in (subject.batch.queries, subject.batch.keys))
    with edit.cut(subject.model, subject.name("2-4"), list(product(range(queries), range(keys)))):
        edited = subject.run()
    with by_hand(subject, torch.zeros_like):
        agree(edited, subject.run())


@pytest.mark.parametrize("family", ["llama", "qwen3", "gemma2"])
def test_a_group_is_the_query_heads_that_share_a_key_head(family: str) -> None:
    subject = make(family)
    heads = tiny.FAMILIES[family].heads
    layer = next(part for part in subject.model.module.modules() if hasattr(part, "k_proj"))
    groups = layer.k_proj.out_features // layer.head_dim
    assert 1 < subject.model.shape.key_value_heads["decoder"] == groups < heads
    with edit.zero(subject.model, "2-kv2"):
        edited = subject.run()
    with ExitStack() as stack:
        for head in range(heads // groups, 2 * heads // groups):
            stack.enter_context(by_hand(subject, torch.zeros_like, head=head))
        agree(edited, subject.run())


@FAMILIES
def test_a_layer_is_all_of_its_heads(family: str) -> None:
    subject = make(family)
    with edit.zero(subject.model, subject.name("1")):
        edited = subject.run()
    with ExitStack() as stack:
        for head in range(tiny.FAMILIES[family].heads):
            stack.enter_context(by_hand(subject, torch.zeros_like, 1, head))
        agree(edited, subject.run())


@pytest.mark.parametrize("family", ["bert", "gpt2", "llama"])
def test_the_published_recipe_is_wrong(family: str) -> None:
    """Zeroing the head's slice of what comes *after* the projection runs without an error, and is no head."""
    subject = make(family)
    module = re.compile(r"(attention\.output\.dense|attn\.c_proj|o_proj)$")
    width = tiny.FAMILIES[family].width // tiny.FAMILIES[family].heads
    layer = [part for name, part in subject.model.module.named_modules() if module.search(name)][1]

    def zero_slice(_: object, __: object, output: torch.Tensor) -> torch.Tensor:
        output = output.clone()
        output[..., HEAD * width : (HEAD + 1) * width] = 0
        return output

    handle = layer.register_forward_hook(zero_slice)
    wrong = subject.run()
    handle.remove()
    with edit.zero(subject.model, "2-4"):
        right = subject.run()
    assert (wrong - right).abs().max() > 0.1
