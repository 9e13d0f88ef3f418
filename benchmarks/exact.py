"""The error of headscope's answers against float64, on random rows of long texts.

    python benchmarks/exact.py [--lengths 128 512 2048 8192 32768] [--rows 8] [--write docs/performance.md]

On the models and texts of `benchmarks/length.py`. While the forward pass runs, a few rows of every layer and head
are worked out once more in float64, from the same queries and keys by plain softmax, and every answer that `surface`
asks for is compared on them: the largest difference of all is reported.
"""

import argparse
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import torch

import headscope
from headscope.capture import Attention, Capture
from headscope.capture.rows.fused import FusedRows
from headscope.capture.tokens import distance as buckets
from ways.batch import batch_of
from ways.shapes import SHAPES, Text, save_model

BEGIN, END = "<!-- benchmarks/exact.py writes from here -->", "<!-- to here, exact -->"


def main() -> None:
    """Compare at every length, print a table and, if asked to, put it into a page."""
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--lengths", type=int, nargs="+", default=[128, 512, 2048, 8192, 32768])
    arguments.add_argument("--shapes", nargs="+", choices=SHAPES, default=list(SHAPES))
    arguments.add_argument("--rows", type=int, default=8)
    arguments.add_argument("--write", type=Path)
    given = arguments.parse_args()
    report = "\n".join(_report(given))
    print(report)
    if given.write:
        page = given.write.read_text()
        given.write.write_text(f"{page.split(BEGIN)[0]}{BEGIN}\n\n{report}\n\n{END}{page.split(END)[1]}")


def _report(given: argparse.Namespace) -> Iterator[str]:
    yield "| shape | tokens | entropy, nats | shares of attention | mean distance, of itself |"
    yield "| --- | ---: | ---: | ---: | ---: |"
    for shape in given.shapes:
        for length in given.lengths:
            worst = _worst(shape, length, given.rows)
            cells = " | ".join(f"{worst[name]:.0e}" for name in ("entropy", "share", "distance"))
            yield f"| {SHAPES[shape].title} | {length:,} | {cells} |"


def _worst(shape: str, length: int, rows: int) -> Counter[str]:
    """The largest difference of each kind over all layers, heads and chosen rows."""
    worst: Counter[str] = Counter()
    text = Text.with_length(SHAPES[shape], length)
    chosen = torch.randint(length, (rows,), generator=torch.Generator().manual_seed(length))

    def see(attention: Attention) -> None:
        assert isinstance(attention, FusedRows)
        for kind, difference in _differences(attention, chosen, text):
            worst[kind] = max(worst[kind], difference)

    with tempfile.TemporaryDirectory() as folder:
        save_model(SHAPES[shape], length, Path(folder))
        Capture(headscope.load(folder), "interface").run(batch_of(text), see, fused=True)
    return worst


def _differences(attention: FusedRows, rows: torch.Tensor, text: Text) -> Iterator[tuple[str, float]]:
    groups = attention.heads // attention.key.shape[1]
    key = attention.key.double().repeat_interleave(groups, dim=1)
    scores = attention.scale * attention.query[:, :, rows].double() @ key.transpose(-1, -2)
    away = torch.arange(text.length) - rows[:, None]
    weights = scores.masked_fill(away > 0, -torch.inf).softmax(-1) if text.causal else scores.softmax(-1)

    masses, distances = attention.distances(buckets.EDGES)
    place = buckets.bucket(away, buckets.EDGES).expand_as(weights)
    expected = torch.zeros_like(masses[:, :, rows], dtype=torch.float64).scatter_add_(3, place, weights)
    yield "share", _far(masses[:, :, rows], expected)
    mean = (weights * away.abs()).sum(-1)
    yield "distance", _far(distances[:, :, rows] / mean, torch.ones_like(mean))
    yield "entropy", _far(attention.entropy()[:, :, rows], torch.special.entr(weights).sum(-1))
    columns = torch.stack([text.punctuation, ~text.punctuation], dim=-1)[None]  # few keys, and most
    yield "share", _far(attention.average(columns.float())[:, :, rows], weights @ columns.double())
    neighbours = (torch.arange(text.length)[:, None] + torch.tensor([0, -1, 1])).clamp(0, text.length - 1)
    answer = attention.at(neighbours[None])[:, :, rows]
    yield "share", _far(answer, weights.gather(3, neighbours[rows].expand(1, attention.heads, -1, -1)))


def _far(answer: torch.Tensor, expected: torch.Tensor) -> float:
    return float((answer.double() - expected).abs().max())


if __name__ == "__main__":
    main()
