"""How often verdicts are wrong where there is nothing, and how often they find what is planted.

    python benchmarks/verdicts.py [--worlds 1000] [--verdicts lesions stars replication ...] [--write PAGE]

The worlds are those of `tests/worlds`. A row counts the worlds in which anything is said that is not so: that a
phenomenon suffers, that a row of a table stands out, that the best heads gain most, that a head or layer matters. Of
what is planted it counts the worlds in which that is said of it. Intervals are of Clopper and Pearson (1934).
"""

import argparse
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import torch
from scipy.stats import beta

from headscope.analyse.probes import score_best_layer

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from worlds import (
    adapters,
    differences,
    gains,
    layers,
    lesion_worlds,
    pairs,
    replications,
    sampled_rows,
    shares,
    trees,
    untrained,
)

BEGIN, END = "<!-- benchmarks/verdicts.py writes from here -->", "<!-- to here, verdicts -->"

PLANTED = 5.0
"""Standard deviations of random sets by which a planted lesion harms one phenomenon more."""

LIFTED = np.array([0.3, 0.3, 0.1, 0.3])
"""As `OUTCOMES` of the worlds, for a head that is right more often than its rival by a fifth."""

SAMPLED = 0.01
"""The share of its attention that a planted head gives to the token before, measured from a sample of rows."""

CELLS = [(texts, items) for texts in (10, 20, 50, 100) for items in (1, 5, 20, 50)]
SHARES = (0.5, 0.7, 0.9, 0.95, 0.98, 0.995)


@dataclass(frozen=True)
class Row:
    """What became of one kind of world.

    Attributes:
        verdict: what is said.
        world: where.
        right: whether it is planted there.
        count: in how many worlds it is said.
        worlds: of how many.
    """

    verdict: str
    world: str
    right: bool
    count: int
    worlds: int

    def format(self) -> str:
        """Return the row of a table in Markdown."""
        missed = self.worlds - self.count
        lower = beta.ppf(0.025, self.count, missed + 1) if self.count else 0.0
        upper = beta.ppf(0.975, self.count + 1, missed) if missed else 1.0
        cells = f"{self.count / self.worlds:.3f} [{lower:.3f}, {upper:.3f}]"
        false, found = ("", cells) if self.right else (cells, "")
        return f"| {self.verdict} | {self.world} | {self.worlds:,} | {false} | {found} |"


def judge_lesions(worlds: int) -> Iterator[Row]:
    """Tables of 8 sets of heads by 12 phenomena."""
    for name, world in lesion_worlds.WORLDS.items():
        count = sum(bool(lesion_worlds.judge(world, seed).suffers.any()) for seed in range(worlds))
        yield Row("suffers", f"random sets, {name}", False, count, worlds)
    for name in ("normal", "heavy"):
        count = 0
        for seed in range(worlds):
            part = seed % lesion_worlds.PHENOMENA
            judged = lesion_worlds.judge(lesion_worlds.WORLDS[name], seed, [(0, part, PLANTED)])
            count += bool(judged.suffers[0, part])
        yield Row("suffers", f"a set that harms one phenomenon by 5 sd more, {name}", True, count, worlds)


def judge_pairs(worlds: int) -> Iterator[Row]:
    """Two sets of heads of an untrained decoder, and minimal pairs in four phenomena."""
    with TemporaryDirectory() as folder:
        suffers = [pairs.list_suffering(Path(folder), seed) for seed in range(worlds)]
        where = "random sets of an untrained decoder, minimal pairs"
        yield Row("suffers", where, False, sum(map(bool, suffers)), worlds)
        planted = [pairs.list_suffering(Path(folder), seed, planted=True) for seed in range(worlds)]
        where = "the heads that the output of an untrained decoder reads, minimal pairs"
        yield Row("suffers", where, True, sum(pairs.SETS[0] in each for each in planted), worlds)


def judge_stars(worlds: int) -> Iterator[Row]:
    """Tables of 39 rows."""
    for outcomes, parts in shares.OUTCOMES.items():
        for texts in (50, 150):
            draw = np.random.default_rng([texts, len(outcomes)])
            lifts = shares.draw_lifts(draw, parts, texts, 4, worlds, 39, alike=0.2)
            count = int(shares.find_stars(lifts).any(1).sum())
            yield Row("stands out", f"39 rows without a lift, {texts} texts, {outcomes}", False, count, worlds)
    draw = np.random.default_rng(0)
    lifts = shares.draw_lifts(draw, LIFTED, 150, 8, worlds, 39, alike=0.1)
    count = int(shares.find_stars(lifts)[:, 0].sum())
    yield Row("stands out", "the first of 39 rows with a lift of .20", True, count, worlds)


def judge_sampled(worlds: int) -> Iterator[Row]:
    """Tables of 8 and of 2 rows, of which a sample of the query rows is measured."""
    for title, kinds in sampled_rows.WORLDS.items():
        tables = [sampled_rows.tabulate(seed, kinds) for seed in range(worlds)]
        for place, heading in enumerate(sampled_rows.HEADINGS.values()):
            count = sum(bool(sampled_rows.list_stars(each[place])) for each in tables)
            yield Row("stands out", f"sampled rows, {heading}, {title}", False, count, worlds)
    found = [sampled_rows.tabulate(seed, ["near"], planted=SAMPLED)[0] for seed in range(worlds)]
    count = sum("previous token" in sampled_rows.list_stars(table) for table in found)
    where = f"sampled rows, a head that gives the token before {SAMPLED} more"
    yield Row("stands out", where, True, count, worlds)


def judge_replication(worlds: int) -> Iterator[Row]:
    """Tables of 23 rows, whose heads were chosen on another corpus."""
    report, draw = replications.make_report(), np.random.default_rng(worlds)
    for rows in (0, 5):
        lifts = np.where(np.arange(replications.ROWS) < rows, 0.3, 0)
        survive = np.array([replications.replicate(report, draw, lifts) for _ in range(worlds)])
        count = int(survive[:, rows:].any(1).sum())
        yield Row("survives", f"{replications.ROWS - rows} rows without a lift, {rows} with one", False, count, worlds)
    yield Row("survives", "the first of 5 rows with a lift of .30", True, int(survive[:, 0].sum()), worlds)


def judge_differences(worlds: int) -> Iterator[Row]:
    """Two tables of 72 heads by 5 rows, of the same texts."""
    for name in differences.OUTCOMES:
        for texts in (30, 150):
            draw = np.random.default_rng([texts, len(name)])
            # Here the test is exact: more worlds show that its error is 5 %, and not only below 7 %.
            count = 4 * worlds if name == "as often" else worlds
            tables = (differences.draw_tables(draw, name, texts) for _ in range(count))
            false = sum(bool(differences.find_differences(each).any()) for each in tables)
            yield Row("higher, lower", f"360 scores that do not differ, {texts} texts, {name}", False, false, count)
    draw = np.random.default_rng(0)
    tables = (differences.draw_tables(draw, "as often", 150, share=0.5) for _ in range(worlds))
    count = sum(bool(differences.find_differences(each).any()) for each in tables)
    yield Row(
        "higher, lower", "360 scores that do not differ, 150 texts, half of the heads alike", False, count, worlds
    )
    for texts in (50, 150):
        draw = np.random.default_rng(texts)
        tables = (differences.draw_tables(draw, "as often", texts, 8, planted=True) for _ in range(worlds))
        found = [differences.find_differences(each) for each in tables]
        where = f"one of 360 scores that is higher by .20, {texts} texts"
        count = sum(bool(each[differences.PLACE]) for each in found)
        yield Row("higher, lower", where, True, count, worlds)
        others = sum(int(each.sum() > each[differences.PLACE]) for each in found)
        yield Row("higher, lower", f"359 scores that do not differ beside it, {texts} texts", False, others, worlds)


def judge_gain(worlds: int) -> Iterator[Row]:
    """Five runs of 71 heads."""
    titles = {"nothing": "no head changes", "few words": "no head changes, 64 words of a head"}
    titles |= {"each run its own": "each run changes heads at random"}
    for world, title in titles.items():
        draw = np.random.default_rng(len(world))
        ends = np.array([gains.draw_interval(draw, world) for _ in range(worlds)])
        yield Row("the best gain most", title, False, int(((ends[:, 0] > 0) | (ends[:, 1] < 0)).sum()), worlds)
    draw = np.random.default_rng(3)
    ends = np.array([gains.draw_interval(draw, "rich") for _ in range(worlds)])
    count = int((ends[:, 0] > 0).sum())
    yield Row("the best gain most", "a head gains .15 of what it is above the mean", True, count, worlds)


def judge_layers(worlds: int) -> Iterator[Row]:
    """The interval of the layer in which the structural probe finds most links, of 13."""
    for same in (False, True):
        draw = np.random.default_rng(int(same))
        missed = sum(layers.is_above(layers.draw_table(draw, same=same)) for _ in range(worlds))
        where = "13 layers that find as much" + (", mostly the same links" if same else "")
        yield Row("layer finds more than it does", where, False, missed, worlds)
    draw = np.random.default_rng(2)
    count = sum(score_best_layer(layers.draw_table(draw, gain=0.05))[0] == layers.BEST for _ in range(worlds))
    yield Row("the layer is the best", "one of 13 layers that finds .05 more", True, count, worlds)


def judge_trees(worlds: int) -> Iterator[Row]:
    """The sentence on the structural probe, of hidden states of three layers."""
    with TemporaryDirectory() as folder:
        nothing = [trees.read_sentence(Path(folder), seed) for seed in range(worlds)]
        where = f"hidden states of {trees.LAYERS} layers that are noise"
        yield Row("layer has trees", where, False, sum(map(trees.finds_trees, nothing)), worlds)
        planted = [trees.read_sentence(Path(folder), seed, size=trees.SIZE) for seed in range(worlds)]
        count = sum(trees.finds_trees(each) and each[0] == trees.BEST for each in planted)
        where = f"the layer of {trees.LAYERS} whose hidden states have the trees, in noise"
        yield Row("layer has trees", where, True, count, worlds)


def judge_placebos(worlds: int) -> Iterator[Row]:
    """Untrained models, and a planted head."""
    for family in untrained.FAMILIES:
        needed = [untrained.list_needed(untrained.make(family, seed), seed) for seed in range(worlds)]
        for kind in ("head", "layer"):
            count = sum(bool(each[kind]) for each in needed)
            yield Row("matters", f"any {kind} of an untrained {family}", False, count, worlds)
    for family in untrained.PLANTED:
        count = 0
        for seed in range(worlds):
            model = untrained.make(family, seed)
            untrained.plant(model, seed, family)
            count += "2-3" in untrained.list_needed(model, seed)["head"]
        yield Row("matters", f"a head that the output of an untrained {family} reads", True, count, worlds)


def judge_intervals(worlds: int) -> Iterator[Row]:
    """Intervals of 95 % of a share: those that do not hold it, in the mean over all cells and in the worst."""
    for mixture in shares.MIXTURES:
        missed: dict[tuple[int, int, float, float], float] = {}
        for correlation in (0.05, 0.3):
            draw = np.random.default_rng([round(100 * correlation), len(mixture)])
            for texts, items in CELLS:
                for share in SHARES:
                    ratio = shares.draw_ratio(draw, mixture, share, correlation, texts, items, worlds, equal=False)
                    missed[texts, items, share, correlation] = 1 - shares.cover(ratio, share)
        worst = max(missed, key=lambda cell: missed[cell])
        mean, every = float(np.mean([*missed.values()])), worlds * len(missed)
        yield Row("interval misses the truth", f"{mixture}: all {len(missed)} cells", False, round(mean * every), every)
        cell = "{} texts of {} items, share {}, correlation {}".format(*worst)
        where = f"{mixture}: the worst cell, {cell}"
        yield Row("interval misses the truth", where, False, round(missed[worst] * worlds), worlds)


def judge_adapters(worlds: int) -> Iterator[Row]:
    """Whether an adapter, or a placebo in its place, changes any head more than 19 placebos do."""
    judged = [adapters.judge_world(seed) for seed in range(worlds)]
    verdict, head = "changed more than by placebos", f"{adapters.LAYER}-{adapters.HEAD}"
    yield Row(verdict, "a placebo adapter", False, sum(bool(placebo) for _, placebo in judged), worlds)
    others = sum(bool(real - {head}) for real, _ in judged)
    yield Row(verdict, "a head to which the adapter gives no rule", False, others, worlds)
    yield Row(verdict, "a head to which it gives a rule", True, sum(head in real for real, _ in judged), worlds)


VERDICTS: Mapping[str, Callable[[int], Iterator[Row]]] = {
    "lesions": judge_lesions, "pairs": judge_pairs, "stars": judge_stars, "sampled": judge_sampled,
    "replication": judge_replication, "differences": judge_differences, "gain": judge_gain, "layers": judge_layers,
    "trees": judge_trees, "intervals": judge_intervals, "placebos": judge_placebos, "adapters": judge_adapters,
}  # fmt: skip

WORLDS = {"placebos": 100, "adapters": 100, "trees": 100, "pairs": 300, "sampled": 700}
"""Worlds of verdicts of which 1,000 take hours."""


def main() -> None:
    """Judge the worlds, print a table and, if a page is given, put it there."""
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--worlds", type=int, help="default: 1000, but 100 to 700 of verdicts that take long")
    arguments.add_argument("--verdicts", nargs="+", choices=VERDICTS, default=[*VERDICTS])
    arguments.add_argument("--write", type=Path)
    given = arguments.parse_args()
    torch.set_num_threads(1)
    lines = ["| verdict | world | worlds | said falsely | said rightly |", "| --- | --- | ---: | ---: | ---: |"]
    print(*lines, sep="\n")
    for verdict in given.verdicts:
        for row in VERDICTS[verdict](given.worlds or WORLDS.get(verdict, 1000)):
            lines.append(row.format())
            print(lines[-1], flush=True)
    if given.write:
        page = given.write.read_text()
        given.write.write_text(
            f"{page.split(BEGIN)[0]}{BEGIN}\n\n" + "\n".join(lines) + f"\n\n{END}{page.split(END)[1]}"
        )


if __name__ == "__main__":
    main()
