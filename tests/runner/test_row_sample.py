"""Statistics from a sample of query rows: unbiased, with intervals that cover the values of all rows."""

import json
import random
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import scipy.stats
import xarray as xr

import headed
import laws
import tiny
from headscope.capture.model.model import Model
from headscope.capture.passes.stream import Stream
from headscope.corpora import Document, Shard, summarize
from headscope.errors import HeadscopeError
from headscope.reducers import REDUCERS, Copying
from headscope.reducers.reducer import Reducer, Sums
from headscope.reducers.sinks import Sinks
from headscope.runner import Plan, Run, ShardSums, measure, merge_shards, resolve_reducers, row_sample
from headscope.runner.local import open_stream
from headscope.runner.row_sample import FIRST_ROWS, LEAST_ROWS, SAMPLES, RowSample, find_interval, find_result

SAMPLED = [name for name, reducer in REDUCERS.items() if reducer.samples_queries and not reducer.reads_logits]
ROWS = 37
STEP = 5


def write_text(words: int, seed: int) -> Document:
    rng = random.Random(seed)
    return Document(f"text {seed}", tuple(rng.choice(tiny.WHOLE) for _ in range(words)))


DOCUMENTS = [write_text(words, seed) for seed, words in enumerate((127, 89, 11, 113))]
REDUCED = resolve_reducers(SAMPLED, summarize(DOCUMENTS))


def make(family: str, positions: int | None = None) -> Model:
    module, tokenizer = tiny.make(family)
    if positions is not None:
        module.config.max_position_embeddings = tokenizer.model_max_length = positions
    return Model.from_module(module, tokenizer, name=family)


def tabulate(
    model: Model, plan: Plan, documents: Sequence[Document] = DOCUMENTS, reducers: Sequence[Reducer] = REDUCED
) -> xr.Dataset:
    return laws.tabulate_sums(laws.add_up(model, documents, reducers, plan), model, reducers)


def list_intervals(table: xr.Dataset) -> list[str]:
    """The variables that have an interval."""
    return [str(name).removesuffix("_lower") for name in table.data_vars if str(name).endswith("_lower")]


def draw_all(batch, attention_type: str, rows: int, seed: int) -> RowSample | None:
    """The samples of all starts, which are all rows; none of a text that has too few for so many."""
    queries = batch.queries(attention_type)
    if queries.length < row_sample.FIRST_ROWS + STEP:
        return None
    special = (queries.cls | queries.sep)[:, row_sample.FIRST_ROWS :].any(0).nonzero()[:, 0] + row_sample.FIRST_ROWS
    starts = range(row_sample.FIRST_ROWS, row_sample.FIRST_ROWS + STEP)
    return RowSample(queries.length, STEP, starts, special.tolist())


def divide_by_tokens(table: xr.Dataset, name: str) -> xr.DataArray:
    """A variable, as the mean of what it adds up over the tokens of a fold: each of them is rounded."""
    tokens = re.match(r"fold_[a-z]+(?=_)", name)
    return table[name] if tokens is None else table[name] / table[tokens[0]].clip(min=1)


def assert_all_starts_are_all_rows(
    monkeypatch, model: Model, plan: Plan, reducers: Sequence[Reducer] = REDUCED
) -> list[str]:
    """The variables with an interval of a table that is exact.

    Each row is in one of the samples, so that their mean is what a sample is in the mean: an estimate without bias.
    """
    exact = tabulate(model, plan, reducers=reducers)
    monkeypatch.setattr(row_sample, "FIRST_ROWS", 7)
    monkeypatch.setattr(row_sample, "PARTS", 3)
    monkeypatch.setattr(row_sample, "PART_ROWS", 29)
    monkeypatch.setattr(row_sample, "SAMPLES", STEP)
    monkeypatch.setattr(RowSample, "draw", draw_all)
    table = tabulate(model, replace(plan, sample_queries=ROWS), reducers=reducers)
    for name, values in exact.data_vars.items():
        relative = 1e-6 if values.attrs["units"] == "tokens" else 0
        ours, theirs = (divide_by_tokens(each, str(name)) for each in (table, exact))
        np.testing.assert_allclose(ours, theirs, atol=3e-6, rtol=relative, err_msg=str(name))
    for name in list_intervals(table):  # nothing is left out that could be otherwise
        for end in ("lower", "upper"):
            np.testing.assert_allclose(table[f"{name}_{end}"], table[name], atol=1e-12, rtol=1e-9)
    return list_intervals(table)


@pytest.mark.full
@pytest.mark.parametrize(("family", "view"), [*((family, None) for family in tiny.FAMILIES), ("llama", "norm")])
def test_the_samples_of_all_starts_come_to_all_rows(family, view, monkeypatch) -> None:
    intervals = assert_all_starts_are_all_rows(monkeypatch, make(family), Plan(batch_tokens=307, view=view))
    assert {"mass_self", "entropy", "mean_distance", "mass_distance", "average_map", "match_mass"} <= {*intervals}


def test_what_heads_copy_is_sampled_too(monkeypatch) -> None:
    model = Model.from_module(*headed.make("mistral", "causal-lm"), name="mistral")
    assert assert_all_starts_are_all_rows(monkeypatch, model, Plan(batch_tokens=307), [Copying()]) == ["copying_mass"]


@pytest.mark.parametrize("family", ["deberta", "mpnet"])
def test_a_model_that_returns_its_attention_is_measured_whole(family) -> None:
    model = make(family)
    # Texts of which rows are sampled are read alone.
    table, exact = (tabulate(model, Plan(batch_tokens=1, sample_queries=rows)) for rows in (ROWS, None))
    assert_is_exact(table, exact)


def assert_is_exact(table: xr.Dataset, exact: xr.Dataset) -> None:
    """A table that was to be estimated, and of which nothing had to be."""
    assert list_intervals(table)
    assert not list_intervals(exact)
    for name, values in exact.data_vars.items():
        np.testing.assert_array_equal(table[name], values, err_msg=str(name))
    for name in list_intervals(table):
        np.testing.assert_allclose(table[f"{name}_lower"], table[f"{name}_upper"], atol=1e-12, rtol=1e-9)


@pytest.mark.parametrize("family", ["bert", "gemma2", "t5"])
def test_a_sample_is_of_some_rows_and_says_so(family) -> None:
    model = make(family)
    done = laws.add_up(model, DOCUMENTS, REDUCED, Plan(sample_queries=ROWS))
    table, exact = laws.tabulate_sums(done, model, REDUCED), tabulate(model, Plan())
    differ = np.abs(table["entropy"] - exact["entropy"]).values
    assert (differ[np.isfinite(differ)] > 1e-5).all()
    ways = {way.split(maxsplit=2)[2] for way in done.select_run("path")}
    short = "with the matrix: fewer than 1,536 keys, for which it is faster"
    sampled = {
        "bert": {"some rows; the output without the matrix: all keys"},
        "gemma2": {"some rows; the output with the matrix: the model adds to the scores (softcap)"},
        "t5": {"some rows; the output with the matrix: the model adds to the scores (position_bias)"},
    }
    assert ways - {short} >= sampled[family]


def test_the_output_is_made_with_the_matrix_where_that_is_asked_for() -> None:
    model = make("llama")
    done, other = (
        laws.add_up(model, DOCUMENTS, REDUCED, Plan(sample_queries=ROWS, fused=how)) for how in (False, None)
    )
    ways = {way.split(maxsplit=2)[2] for way in done.select_run("path")}
    assert "some rows; the output with the matrix: it was asked for" in ways
    table, expected = (laws.tabulate_sums(each, model, REDUCED) for each in (done, other))
    np.testing.assert_allclose(table["entropy"], expected["entropy"], atol=2e-6)


def test_rows_of_special_tokens_are_measured_in_any_case() -> None:
    model = make("bert")
    table, exact = tabulate(model, Plan(sample_queries=ROWS)), tabulate(model, Plan())
    for name in ("mass_sep_from_sep", "entropy_from_cls"):
        np.testing.assert_allclose(table[name], exact[name], atol=2e-6)
        np.testing.assert_allclose(table[f"{name}_upper"], table[f"{name}_lower"], atol=1e-12)
    assert (table["mass_sep_from_other_upper"] - table["mass_sep_from_other_lower"] > 1e-5).all()


def test_short_texts_are_measured_whole() -> None:
    model, documents = make("bert"), tiny.documents(7)
    table, exact = (tabulate(model, Plan(sample_queries=rows), documents) for rows in (ROWS, None))
    assert_is_exact(table, exact)


@pytest.mark.parametrize("family", ["llama", "t5"])
def test_a_sample_is_the_same_whatever_a_text_is_read_with(family) -> None:
    model, threshold = make(family), FIRST_ROWS + ROWS
    around = [write_text(threshold + more, 7 + more) for more in (-3, -2, -1, 0, 1, 13)]
    (reducer,) = resolve_reducers(["surface"], summarize(around))
    alone, together = (Plan(batch_tokens=tokens, sample_queries=ROWS) for tokens in (1, 10_007))
    expected = tabulate(model, alone, around, [reducer])
    laws.assert_same(tabulate(model, together, around[::-1], [reducer]), expected)
    assert np.nanmin(expected["entropy_upper"] - expected["entropy_lower"]) > 1e-5


def draw_starts(texts: Sequence[Document], rows: int = LEAST_ROWS) -> list[Sequence[int]]:
    """Return where the samples of each text begin, in the order in which they are read."""
    portions = open_stream(make("llama"), texts, REDUCED, Plan(sample_queries=rows))
    samples = [RowSample.draw(batch, "decoder", rows, seed=0) for portion in portions for batch in portion.batches]
    return [sample.starts for sample in samples if sample is not None]


def test_each_text_has_rows_of_its_own_under_any_name() -> None:
    first, second = (write_text(127, seed) for seed in (1, 2))
    starts, other, renamed = draw_starts([first, second, replace(first, id="another")])
    assert starts != other
    assert starts == renamed


def test_a_seed_gives_one_sample_and_another_gives_another() -> None:
    model = make("llama")
    first, again, other = (tabulate(model, Plan(sample_queries=ROWS, seed=seed)) for seed in (3, 3, 5))
    xr.testing.assert_identical(first, again)
    assert (first["entropy"] != other["entropy"]).all()


# ---------------------------------------------------------------- intervals

LENGTHS = (1511, 1013)
SAMPLE = 257
REPETITIONS = 200


def observe(model: Model, document: Document, reducer: Reducer, step: int) -> tuple[RowSample, dict, Sums]:
    """The samples of all starts, the sums of each block by layer, and the counts of a text."""
    portion = next(iter(Stream([document], (model,))))
    (batch,), (capture,) = portion.batches, portion.captures
    starts = range(FIRST_ROWS, FIRST_ROWS + step)
    every = RowSample(batch.queries("decoder").length, step, starts, ())
    facts, observed = reducer.prepare(batch, "decoder"), defaultdict(list)

    def look(attention) -> None:
        observed[attention.layer].append((attention.rows, reducer.observe(facts, attention)))

    capture.run(batch, look, chosen_rows={"decoder": [*every.blocks]})
    return every, observed, reducer.count(facts)


def estimate(seen: Sequence, reducer: Reducer, starts: Sequence[np.ndarray]) -> xr.Dataset:
    """The values of all texts, from the samples of each at some starts."""
    total: Counter = Counter()
    for (every, observed, counts), drawn in zip(seen, starts, strict=True):
        sample = replace(every, starts=[FIRST_ROWS + int(start) for start in drawn])
        wanted = {start % sample.step for start in sample.starts}
        for layer, blocks in observed.items():
            kept = [block for block in blocks if block[0].step is None or block[0].start % sample.step in wanted]
            total.update({(layer, name): sums.numpy() for name, sums in sample.estimate(kept).items()})
        total.update({name: count.numpy() for name, count in counts.items()})
    names = {key[1] for key in total if isinstance(key, tuple)}
    sums = {name: np.stack([total[layer, name] for layer in sorted(seen[0][1])]) for name in names}
    return find_result(reducer, sums, {name: value for name, value in total.items() if isinstance(name, str)})


@pytest.mark.full
def test_intervals_cover_the_values_of_all_rows() -> None:
    """Over 200 samples of two texts; the means of 12 heads vary by about .01 from one set of samples to another."""
    documents = [write_text(words, words) for words in LENGTHS]
    (reducer,) = resolve_reducers(["surface"], summarize(documents))
    model, step = make("llama", 2003), -(-max(LENGTHS) * SAMPLES // SAMPLE)
    seen = [observe(model, document, reducer, step) for document in documents]
    exact = tabulate(model, Plan(), documents)
    generator, covered = np.random.default_rng(7), defaultdict(list)
    for _ in range(REPETITIONS):
        table = estimate(seen, reducer, [generator.choice(step, SAMPLES, replace=False) for _ in documents])
        for name in list_intervals(table):
            lower, upper = (table[f"{name}_{end}"].values for end in ("lower", "upper"))
            inside = (lower <= exact[name].values) & (exact[name].values <= upper)
            # Where the mask or the corpus allows one value alone, every sample has it.
            covered[name] += inside[upper - lower > 1e-9].tolist()
    shares = {name: np.mean(inside) for name, inside in covered.items() if inside}
    assert {"mass_self", "mass_previous", "mass_first", "entropy", "mean_distance", "mass_distance"} <= {*shares}
    assert np.mean([*shares.values()]) == pytest.approx(0.95, abs=0.02), shares
    assert min(shares.values()) > 0.88, shares


def test_without_skewness_the_interval_is_students() -> None:
    half = np.array([0.3, 0.7, 1.1, 1.9, 2.3, 3.1, 3.7, 4.3])
    samples = 5 + np.concatenate([half, -half])
    lower, upper = find_interval(np.array(5.0), samples)
    expected = scipy.stats.t.interval(0.95, len(samples) - 1, 5, scipy.stats.sem(samples))
    np.testing.assert_allclose([lower, upper], expected, rtol=1e-6)
    np.testing.assert_array_equal(find_interval(np.array(5.0), np.full(16, 5.0)), [5, 5])


@pytest.mark.parametrize(
    "draw",
    [lambda rng, size: rng.normal(size=size), lambda rng, size: rng.exponential(size=size) - 1,
     lambda rng, size: rng.gamma(0.5, size=size) - 0.5],
    ids=["normal", "exponential", "gamma"],
)  # fmt: skip
def test_intervals_of_skewed_samples_are_nearer_to_their_level_than_students(draw: Callable) -> None:
    samples = draw(np.random.default_rng(11), (SAMPLES, 20_011))
    value, error = samples.mean(0), scipy.stats.sem(samples, axis=0)
    lower, upper = find_interval(value, samples)
    covered = ((lower <= 0) & (upper >= 0)).mean()
    student = (np.abs(value) <= error * scipy.stats.t.ppf(0.975, SAMPLES - 1)).mean()
    assert abs(covered - 0.95) <= abs(student - 0.95) + 0.005
    assert covered > 0.925


# ---------------------------------------------------------------- runs


@pytest.mark.full
def test_a_run_is_resumed_and_shards_are_joined(tmp_path: Path, monkeypatch) -> None:
    model, plan = make("llama"), Plan(batch_tokens=131, sample_queries=ROWS)
    table = measure(model, DOCUMENTS, REDUCED, plan=plan)
    assert (table.attrs["sample_queries"], table.attrs["sample_seed"]) == (ROWS, 0)
    assert any("some rows" in way for way in json.loads(table.attrs["paths"]))
    checkpoint = tmp_path / "sums.npz"
    monkeypatch.setattr("headscope.runner.local.SAVE_EVERY", 0.0)

    def stop(done: int, total: int) -> None:
        if done > 130:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        measure(model, DOCUMENTS, REDUCED, plan=plan, checkpoint=checkpoint, progress=stop)
    resumed = measure(model, DOCUMENTS, REDUCED, plan=plan, checkpoint=checkpoint, resume=True)
    xr.testing.assert_equal(resumed, table)
    with pytest.raises(HeadscopeError, match="its sample_seed differ"):
        measure(model, DOCUMENTS, REDUCED, plan=replace(plan, seed=3), checkpoint=checkpoint, resume=True)
    paths = [tmp_path / f"{number}.npz" for number in (1, 2)]
    for number, path in enumerate(paths, start=1):
        run = Run.open(model, DOCUMENTS, REDUCED, plan=plan).select(Shard(number, 2))
        ShardSums.of_run(run, run.add_up()).write(path)
    joined = merge_shards(paths)
    assert list_intervals(joined) == list_intervals(table)
    assert joined.attrs["sample_queries"] == ROWS


class Sinking(Sinks):
    """A reducer that says that it can be sampled, and needs a whole layer."""

    samples_queries = True


@pytest.mark.parametrize(
    ("reducer", "plan", "refusal"),
    [
        ("sinks", Plan(sample_queries=ROWS), "the reducer `sinks` needs all query rows of a text; measure it apart"),
        (Sinking(), Plan(sample_queries=ROWS), "the reducer `sinks` needs all query rows of a text"),
        ("surface", Plan(sample_queries=ROWS, view="rollout"), "the view `rollout` needs all query rows of a text"),
        ("surface", Plan(sample_queries=LEAST_ROWS - 1), "a sample of 31 query rows does not show how far off it is"),
    ],
)
def test_what_cannot_be_sampled_is_refused(reducer, plan, refusal) -> None:
    with pytest.raises(HeadscopeError, match=refusal):
        measure(make("llama"), DOCUMENTS, reducer, plan=plan)
