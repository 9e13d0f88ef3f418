"""Worlds of sets of heads: what a set harms, and what random sets of the same layers do.

A set is a random one too, so that whatever is said to suffer is said falsely; but for what is planted.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from headscope.analyse.rank_test import Parts, count_needed_runs, draw_until_decided

SETS, PHENOMENA, EXAMPLES = 8, 12, 33
ALIKE = Parts(np.zeros(PHENOMENA), np.full(PHENOMENA, float(PHENOMENA)))

Draw = Callable[[int], np.ndarray]
"""Draws some random sets, and returns the harm of each in each part."""


@dataclass(frozen=True)
class World:
    """How random sets differ.

    Attributes:
        begin: for each set of a table: what is drawn, of a generator.
        parts: that are compared.
    """

    begin: Callable[[np.random.Generator], Draw]
    parts: Parts = ALIKE


def _correlate(random: np.random.Generator, count: int) -> np.ndarray:
    """Normal harm of phenomena that go together, in some more than in others."""
    common, own = random.standard_normal((count, 1)), random.standard_normal((count, PHENOMENA))
    return (common + own) / np.sqrt(2)


def normal(random: np.random.Generator) -> Draw:
    """Phenomena bear more or less."""
    scale = np.exp(random.normal(0, 0.5, PHENOMENA))
    return lambda count: scale * _correlate(random, count)


def heavy(random: np.random.Generator) -> Draw:
    """As Student's t with three degrees of freedom, all phenomena at once."""
    draw = normal(random)
    return lambda count: draw(count) / np.sqrt(random.chisquare(3, (count, 1)) / 3)


def skewed(random: np.random.Generator) -> Draw:
    """Log-normal: few sets do nearly all the harm."""
    return lambda count: np.exp(_correlate(random, count))


def of_heads(layers: int, heads: int) -> Callable[[np.random.Generator], Draw]:
    """Five heads of a model, some of which do much; two that harm the same phenomenon harm it more than their sum."""

    def begin(random: np.random.Generator) -> Draw:
        effects = random.standard_t(3, (layers, heads, 1)) * random.exponential(1, (layers, heads, PHENOMENA))
        effects *= np.exp(random.normal(0, 1, (layers, 1, 1)))
        chosen = random.choice(layers, 5)
        seen = set()

        def draw(count: int) -> np.ndarray:
            drawn = []
            while len(drawn) < count:
                places = [*dict.fromkeys(zip(chosen, random.integers(0, heads, 5), strict=True))]
                if len(places) == 5 and (key := frozenset(places)) not in seen:
                    seen.add(key)
                    drawn.append([effects[place] for place in places])
            harm = np.array(drawn).sum(1)
            return harm + 0.1 * harm**2

        return draw

    return begin


def counted(random: np.random.Generator) -> Draw:
    """The margin and the accuracy of minimal pairs, of all and in each phenomenon: most sets turn few pairs or none."""
    draw, whole = normal(random), random.normal(2, 2, (PHENOMENA, EXAMPLES))

    def measure(count: int) -> np.ndarray:
        margins = whole - 0.3 * draw(count)[..., None] + random.normal(0, 0.3, (count, PHENOMENA, EXAMPLES))
        harm = [np.mean(whole > 0, -1) - np.mean(margins > 0, -1), (whole - margins).mean(-1)]
        return np.concatenate([part for each in harm for part in (each.mean(-1, keepdims=True), each)], axis=1)

    return measure


WORLDS: Mapping[str, World] = {
    "normal": World(normal),
    "heavy": World(heavy),
    "skewed": World(skewed),
    "6 x 12 heads": World(of_heads(6, 12)),
    "30 x 9 heads": World(of_heads(30, 9)),
    "wrong floor": World(heavy, Parts(np.geomspace(0.01, 100, PHENOMENA), np.geomspace(1, 1000, PHENOMENA))),
    "pairs": World(
        counted,
        Parts(
            np.tile(0.5 / np.array([PHENOMENA * EXAMPLES, *[EXAMPLES] * PHENOMENA]), 2),
            np.tile([1.0, *[PHENOMENA] * PHENOMENA], 2),
        ),
    ),
}
"""Exchangeable sets: by how their harm is spread, and by yardsticks that fit it badly.

Of normal harm Student's t would hold as well; in every other world it says ``suffers`` in one table of five or more."""


@dataclass(frozen=True)
class Judged:
    """What a table of sets says.

    Attributes:
        suffers: what suffers, by set and part.
        runs: random sets of each set.
    """

    suffers: np.ndarray
    runs: np.ndarray


def judge(world: World, seed: int, planted: Sequence[tuple[int, int, float]] = (), least: int = 10) -> Judged:
    """A table of sets in a world; planted ones harm a part by some standard deviations of random sets more."""
    random = np.random.default_rng(seed)
    draws = [world.begin(random) for _ in range(SETS)]
    harm = {each: draw(1) for each, draw in enumerate(draws)}
    for each, part, size in planted:
        harm[each][0, part] += size * draws[each](200)[:, part].std()

    def draw(going: Sequence[int], done: int, until: int) -> Mapping[int, np.ndarray]:
        for each in going:
            harm[each] = np.concatenate([harm[each], draws[each](until - done)])
        return harm

    p = draw_until_decided(draw, world.parts, [count_needed_runs(SETS)] * SETS, least)
    return Judged(p <= 0.05, np.array([len(of_set) - 1 for of_set in harm.values()]))
