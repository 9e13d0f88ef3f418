"""The cost of measuring on a GPU in bfloat16, as ratios to the bare model, and errors against float64, in one table.

    python benchmarks/gpu.py [--minutes 4] [--write docs/performance.md]
    python benchmarks/gpu.py --tiny

Models have random weights and real shapes. Texts are read bare and then measured, in this one process; a first run, for
which kernels are compiled, is left out, and of runs of single texts the first ones, with which the capture is verified
and all texts are aligned. A row that does not fit into memory, or for which no time is left, says so. `--tiny` runs the
same rows with tiny models on the processor, in float32, to see that the script works: its figures mean nothing.
"""

import argparse
import gc
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from random import Random
from statistics import median

import torch
import transformers
from tokenizers import Tokenizer, models, pre_tokenizers
from torch.utils._python_dispatch import TorchDispatchMode
from transformers import BertConfig, BertModel, LlamaConfig, LlamaForCausalLM, LlamaModel, PreTrainedTokenizerFast

import headscope
from decoders import HEAD_TYPES, generate_texts
from headscope.capture import Capture, Model
from headscope.capture.forward.untouched import run_untouched
from headscope.capture.forward.verify import select_real
from headscope.capture.passes.stream import Plan, Stream
from headscope.capture.rows.attention import Attention
from headscope.capture.rows.fused import FusedRows
from headscope.corpora import Document, summarize
from headscope.corpora.grammar import generate_sentences
from headscope.runner import resolve_reducers
from headscope.runner.accumulate import accumulate
from headscope.runner.local import open_stream

BEGIN, END = "<!-- benchmarks/gpu.py writes from here -->", "<!-- to here, gpu -->"

WORDS = tuple(f"w{number}" for number in range(200))

LAYERS, BASE_LAYERS = {"1B": 4, "8B": 2}, 12

FIRST, TEXTS, ROUNDS = 3, 6, 3
"""Texts before a time is taken, texts that are read for it, and times of which the median is taken."""

ROWS = 16
"""Rows of each layer that are compared with float64."""


@dataclass(frozen=True)
class Scale:
    """How large the models and texts are: those of the table, or tiny ones.

    Attributes:
        device, dtype: of the models.
        divisor: by which heads, widths, lengths and numbers of texts are divided.
    """

    device: str
    dtype: torch.dtype
    divisor: int

    def shrink(self, number: int) -> int:
        """The number, or a small one."""
        return max(2, number // self.divisor)


def main() -> None:
    """Print the table and, if asked to, put it into a page."""
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--minutes", type=float, default=4, help="after which no row is begun")
    arguments.add_argument("--tiny", action="store_true", help="on the processor, with tiny models")
    arguments.add_argument("--write", type=Path)
    given = arguments.parse_args()
    if not given.tiny and not torch.cuda.is_available():
        raise SystemExit("torch finds no GPU here; give --tiny to see whether the script works.")
    scale = Scale("cpu", torch.float32, 64) if given.tiny else Scale("cuda", torch.bfloat16, 1)
    report = "\n".join(_report(scale, time.monotonic() + 60 * given.minutes))
    if given.write:
        page = given.write.read_text()
        given.write.write_text(f"{page.split(BEGIN)[0]}{BEGIN}\n\n{report}\n\n{END}{page.split(END)[1]}")


def _report(scale: Scale, until: float) -> Iterator[str]:
    """Each line of the table as soon as it is known."""
    name = torch.cuda.get_device_name() if scale.device == "cuda" else "a processor, tiny models"
    dtype = str(scale.dtype).removeprefix("torch.")
    head = (
        f"{name}; torch {torch.__version__}, transformers {transformers.__version__}; {dtype}, random weights.", "",
        "| what | bare model, ms | measured, ms | ratio | wanted |", "| --- | ---: | ---: | ---: | ---: |",
    )  # fmt: skip
    for line in head:
        print(line)
        yield line
    for label, wanted, find in _list_rows(scale):
        try:
            figures = find() if time.monotonic() < until else "no time was left | | "
        except torch.OutOfMemoryError:
            figures = "does not fit into memory | | "
        gc.collect()
        if scale.device == "cuda":
            torch.cuda.empty_cache()
        line = f"| {label} | {figures} | {wanted} |"
        print(line, flush=True)
        yield line


Row = tuple[str, str, Callable[[], str]]


def _list_rows(scale: Scale) -> Iterator[Row]:
    """What the table says: a label, what is wanted, and a function that finds the figures."""
    lengths = (2048, 8192, 32768)
    wanted = {"8B": ("1.15", "1.3", "1.5"), "1B": ("1.15", "1.5", "1.8")}
    for shape, goals in wanted.items():
        for length, goal in zip(lengths, goals, strict=True):
            yield (
                f"`surface`, {shape} shape, {length:,} tokens", goal,
                lambda shape=shape, length=length: _time_texts(scale, shape, scale.shrink(length)),
            )  # fmt: skip
    yield "`surface`, 1B shape, 32 texts of 500 words, whole call", "1.5", lambda: _time_call(scale, "1B", ["surface"])
    yield (
        "`surface` and `relations`, BERT-base shape, 800 sentences, whole call without permutations", "3",
        lambda: _time_call(scale, "base", ["surface", "relations"]),
    )  # fmt: skip
    yield "all head types, 1B shape, 64 texts of 512 tokens", "2", lambda: _time_call(scale, "types", HEAD_TYPES)
    for length in lengths:
        yield (
            f"1B shape, {length:,} tokens: largest error of entropies in nats, shares by distance, shares of columns",
            "1e-5", lambda length=length: _find_errors(scale, scale.shrink(length)),
        )  # fmt: skip
    for texts, length in ((8, 128), (32, 512), (1, 8192)):
        yield (
            f"`surface`: operations a layer beyond the bare model's, {texts} x {length:,} tokens", "60",
            lambda texts=texts, length=length: _count(scale, texts, scale.shrink(length), ["surface"]),
        )  # fmt: skip
    yield (
        "`surface` and `relations`: operations a layer beyond the bare model's, 32 sentences", "120",
        lambda: _count(scale, 32, 0, ["surface", "relations"]),
    )  # fmt: skip


def _time_texts(scale: Scale, shape: str, length: int) -> str:
    """Some texts, a batch each, are read bare, and measured after the first ones."""
    texts = TEXTS if scale.divisor == 1 else 2
    model, plan = _load(scale, shape), Plan(batch_tokens=length)
    documents = _make_texts(FIRST + texts, length)
    reducers = resolve_reducers(["surface"], summarize(documents))
    inputs = [portion.batches[0].inputs for portion in Stream(documents[FIRST:], (model,), plan)]
    times = []
    for _ in range(1 + ROUNDS):
        read = _time(scale, lambda: [_run(model, each) for each in inputs])
        measuring = accumulate(open_stream(model, documents, reducers, plan), reducers)
        deque(islice(measuring, FIRST), maxlen=0)
        times.append((read, _time(scale, lambda rest=measuring: deque(rest, maxlen=0))))
    return _format(*(median(side) / texts for side in zip(*times[1:], strict=True)))


def _time_call(scale: Scale, kind: str, reducers: Sequence[str]) -> str:
    """All texts are read bare, and measured by a whole call, each for the second time."""
    if kind == "base":
        documents = list(generate_sentences(scale.shrink(800)))
    elif kind == "types":
        documents = list(generate_texts(scale.shrink(64), max(64, scale.shrink(512))))
    else:
        documents = _make_texts(scale.shrink(32), max(16, scale.shrink(500)))
    model = _load(scale, kind, documents)
    portions = [portion.batches[0].inputs for portion in Stream(documents, (model,))]

    def call() -> None:
        headscope.measure(model, documents, list(reducers), permutations=0, progress=False)

    def read() -> None:
        for inputs in portions:
            _run(model, inputs)

    for each in (call, read):
        each()
    return _format(_time(scale, read), _time(scale, call))


def _find_errors(scale: Scale, length: int) -> str:
    """The largest errors on random rows against float64; whether the output is the untouched model's."""
    model, documents = _load(scale, "1B"), _make_texts(1, length)
    (portion,) = Stream(documents, (model,), Plan(batch_tokens=length))
    batch, errors = portion.batches[0], [0.0, 0.0, 0.0]

    def compare(attention: Attention) -> None:
        assert isinstance(attention, FusedRows)
        for place, error in enumerate(compare_rows(attention, _choose_rows(length))):
            errors[place] = max(errors[place], error)

    outputs = Capture(model, "interface").run(batch, compare, fused=True)
    same = torch.equal(select_real(batch, outputs.verified), select_real(batch, run_untouched(model, batch)))
    said = ", ".join(f"{error:.1g}" for error in errors)
    return f"{said} | output {'bit-identical' if same else 'not bit-identical'} | "


def compare_rows(attention: FusedRows, rows: torch.Tensor) -> tuple[float, float, float]:
    """The largest errors of entropies, masses by distance and averages of columns of some rows, against float64."""
    rows = rows.to(attention.query.device)
    keys = torch.arange(attention.key.shape[2], device=rows.device)
    groups = attention.heads // attention.key.shape[1]
    columns = (torch.rand(*attention.keys.real.shape, 20, generator=torch.Generator().manual_seed(5)) < 0.2).float()
    columns, edges = columns.to(rows.device), (1, 2, 8, 64)
    mass, _ = attention.distances(edges)
    entropy, average = attention.entropy()[:, :, rows].double(), attention.average(columns)[:, :, rows].double()
    worst = [0.0, 0.0, 0.0]
    seen = attention.reach.sees(rows, keys)[:, None]
    away = keys - rows[:, None]
    cuts = torch.tensor([*(1 - edge for edge in reversed(edges)), *edges], device=rows.device)
    buckets = torch.bucketize(away, cuts, right=True)
    for head in range(attention.heads):
        query, key = attention.query[:, head, rows].double(), attention.key[:, head // groups].double()
        scores = (attention.scale * query @ key.mT)[:, None].masked_fill(~seen, -torch.inf)
        weights = scores.softmax(-1)[:, 0]
        expected = torch.stack([(weights * (buckets == each)).sum(-1) for each in range(len(cuts) + 1)], -1)
        pairs = (
            (entropy[:, head], torch.special.entr(weights).sum(-1)),
            (mass[:, head, rows].double(), expected),
            (average[:, head], weights @ columns.double()),
        )
        real = attention.queries.real[:, rows]
        worst = [
            max(before, float((ours - theirs).abs()[real].max()))
            for before, (ours, theirs) in zip(worst, pairs, strict=True)
        ]
    return worst[0], worst[1], worst[2]


def _choose_rows(length: int) -> torch.Tensor:
    return torch.randperm(length, generator=torch.Generator().manual_seed(7))[:ROWS].sort().values


class _Operations(TorchDispatchMode):
    """Counts the operations that are dispatched."""

    def __init__(self) -> None:
        super().__init__()
        self.count = 0

    def __torch_dispatch__(self, function, types, arguments=(), named=None):  # type of what torch hands over
        self.count += 1
        return function(*arguments, **named or {})


def _count(scale: Scale, texts: int, length: int, names: Sequence[str]) -> str:
    """The operations of a model of four layers less those of one of two, by two layers: bare, measured, the rest."""
    documents = _make_texts(texts, length) if length else list(generate_sentences(texts))
    counts = []
    for layers in (2, 4):
        model = _load(scale, "counted" if length else "counted-base", documents, layers)
        reducers = resolve_reducers(list(names), summarize(documents))
        (portion,) = Stream(documents, (model,), Plan(batch_tokens=1 << 20))
        batch, capture = portion.batches[0], Capture(model, "interface")
        with _Operations() as bare:
            _run(model, batch.inputs)
        (attention_type,) = model.layers
        facts = [reducer.prepare(batch, attention_type) for reducer in reducers]

        def observe(attention: Attention, reducers=reducers, facts=facts) -> None:
            for reducer, prepared in zip(reducers, facts, strict=True):
                reducer.observe(prepared, attention)

        # In the first pass rows of every layer are compared with the model's own function.
        for _ in range(2):
            with _Operations() as measured:
                capture.run(batch, observe, whole=any(reducer.scope == "layer" for reducer in reducers))
        counts.append((bare.count, measured.count))
    bare_count, measured_count = ((more - fewer) / 2 for fewer, more in zip(*counts, strict=True))
    return f"{bare_count:,.0f} operations | {measured_count:,.0f} operations | {measured_count - bare_count:,.0f}"


def _load(scale: Scale, kind: str, documents: Sequence[Document] = (), layers: int | None = None) -> Model:
    """A model with random weights of one of the shapes, on the device; attention is as sharp as in trained models."""
    words = sorted({*WORDS, *(word for document in documents for word in document.words)})
    vocabulary = {word: number for number, word in enumerate(["[PAD]", "[UNK]", "[CLS]", "[SEP]", *words])}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    reader = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, unk_token="[UNK]", pad_token="[PAD]", model_max_length=1 << 17
    )
    torch.manual_seed(0)
    with torch.device(scale.device):
        module = _make_module(scale, kind, len(vocabulary), layers).eval()
    with torch.no_grad():
        for name, weights in module.named_parameters():
            if name.endswith(("q_proj.weight", "k_proj.weight", "query.weight", "key.weight")):
                weights.mul_(3.0)
            if name.endswith("embed_tokens.weight"):
                # As large as in trained models, so that norms divide by what they read and not by their epsilon.
                weights.mul_(50.0)
    return headscope.load(module.to(scale.dtype), reader, task="causal-lm" if kind == "types" else None)


def _make_module(scale: Scale, kind: str, words: int, layers: int | None) -> torch.nn.Module:
    if "base" in kind:
        heads = 12 if scale.divisor == 1 else 2
        return BertModel(BertConfig(
            vocab_size=words, num_hidden_layers=layers or (BASE_LAYERS if scale.divisor == 1 else 2),
            num_attention_heads=heads, hidden_size=64 * heads, intermediate_size=256 * heads,
        ))  # fmt: skip
    size, feed_forward = (128, 14336) if kind == "8B" else (64, 8192)
    heads, key_heads = (32, 8) if scale.divisor == 1 else (4, 2)
    config = LlamaConfig(
        vocab_size=words, num_hidden_layers=layers or LAYERS.get(kind, LAYERS["1B"]), num_attention_heads=heads,
        num_key_value_heads=key_heads, head_dim=size, hidden_size=size * heads,
        intermediate_size=max(16, feed_forward // scale.divisor), max_position_embeddings=1 << 17,
    )  # fmt: skip
    # `copying` reads logits.
    return (LlamaForCausalLM if kind == "types" else LlamaModel)(config)


def _make_texts(texts: int, length: int) -> list[Document]:
    random = Random(length)
    return [Document(f"text-{number}", tuple(random.choices(WORDS, k=length))) for number in range(texts)]


def _run(model: Model, inputs: dict[str, torch.Tensor]) -> None:
    with torch.inference_mode():
        model.module(**inputs)


def _time(scale: Scale, function: Callable[[], object]) -> float:
    """The seconds that a call takes on the device."""
    if scale.device == "cuda":
        torch.cuda.synchronize()
    start = time.perf_counter()
    function()
    if scale.device == "cuda":
        torch.cuda.synchronize()
    return time.perf_counter() - start


def _format(bare: float, measured: float) -> str:
    return f"{1e3 * bare:,.1f} | {1e3 * measured:,.1f} | {measured / bare:.2f}"


if __name__ == "__main__":
    main()
