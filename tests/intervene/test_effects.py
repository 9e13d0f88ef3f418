"""What disabling heads changes on a task, in models of which we know what they need."""

from pathlib import Path

import numpy as np
import pytest
import torch
import transformers as hf

import headscope
import tiny
from headscope.capture.forward.interface import Capture
from headscope.capture.model.model import Model
from headscope.capture.passes.blocks import record_pass
from headscope.capture.passes.projection import find_projections
from headscope.corpora.blimp import MinimalPair
from headscope.errors import CorpusError, HeadscopeError
from headscope.intervene import replacement
from headscope.intervene.ablation import Ablation, list_ablations, list_units
from headscope.intervene.edit import capture_model, collate_sample, disable
from headscope.intervene.effect import Outcomes, measure_outcomes
from headscope.intervene.estimate import estimate_changes
from headscope.intervene.evaluation import Evaluation, compute_logits
from headscope.intervene.labels import prepare_task
from headscope.intervene.language import prepare_pairs, prepare_texts
from headscope.intervene.likelihood import score_minimal_pairs
from headscope.intervene.placebo import DisabledUnit
from headscope.intervene.prediction import SentenceReader
from headscope.intervene.ways import WAYS, Ways, prepare_ways
from headscope.learn.scoring import compute_scores
from headscope.learn.task import TEST, Example, Task
from headscope.view.effects_report import list_effects
from planted_task import make_task, plant_task


def find_output_projections(capture: Capture):
    return find_projections(capture, collate_sample(capture.model))


def measure(evaluation: Evaluation, model: Model, ablations: list[Ablation], ways: Ways | None = None) -> Outcomes:
    outcomes, capture = Outcomes.empty(evaluation, len(ablations)), capture_model(model)
    for _ in measure_outcomes(
        capture, evaluation, ablations, ways or Ways(), find_output_projections(capture), outcomes
    ):
        pass
    return outcomes


def make_language_model(family: str) -> Model:
    base, tokenizer = tiny.make(family)
    kinds = {"bert": hf.BertForMaskedLM, "llama": hf.LlamaForCausalLM, "gpt2": hf.GPT2LMHeadModel}
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        module = kinds[family](base.config).eval()
    module.base_model.load_state_dict(base.state_dict(), strict=False)
    return Model.from_module(module, tokenizer, name=family)


@pytest.fixture(scope="module")
def effects(tmp_path_factory: pytest.TempPathFactory):
    """The effects in a model that needs one head, 2-3."""
    folder = tmp_path_factory.mktemp("effects")
    return headscope.measure_effects(plant_task([(2, 3)]), make_task(), folder, how=[*WAYS], placebos=3, progress=False)


@pytest.mark.full
def test_the_head_that_is_needed_is_found_and_no_other(effects) -> None:
    frame = list_effects(effects)
    heads = frame[(frame["kind"] == "head") & (frame["how"] == "uniform")]
    for metric in ("accuracy", "f1", "matthews", "loss"):
        verdicts = heads[heads["metric"] == metric].set_index("unit")["verdict"]
        assert verdicts[verdicts == "needed"].index.tolist() == ["2-3"]
        assert verdicts["2-3"] == "needed"
        assert "better without" not in verdicts.tolist()


@pytest.mark.full
def test_the_placebos_hold_the_effects_of_all_other_heads(effects) -> None:
    frame = list_effects(effects)
    heads = frame[(frame["kind"] == "head") & (frame["how"] == "uniform") & (frame["metric"] == "accuracy")]
    inside = (heads["placebo_lower"] <= heads["effect"]) & (heads["effect"] <= heads["placebo_upper"])
    assert heads["unit"][~inside].tolist() == ["2-3"]


def test_without_the_head_the_model_guesses_in_every_way(effects) -> None:
    accuracy = effects["whole_accuracy"] + effects["effect_accuracy"].sel(layer=2, head=3, subset="all")
    assert effects["whole_accuracy"].item() == 1
    # Zero always says one label; the others follow the verb, or another sentence.
    assert float(accuracy.max()) <= 0.66


def test_first_order_estimates_rank_the_head_first(effects) -> None:
    for how in WAYS:
        estimates = np.abs(effects["first_order_loss"].sel(how=how, subset="all"))
        assert int(estimates.values.argmax()) == 1 * 5 + 2


def test_a_pair_of_redundant_heads_shows_only_together(tmp_path: Path) -> None:
    table = headscope.measure_effects(
        plant_task([(2, 3), (3, 1)]), make_task(), tmp_path, how="zero", heads="2-3,3-1,1-1", placebos=0,
        pairs=3, progress=False,
    )  # fmt: skip
    frame = list_effects(table).query("metric == 'accuracy'").set_index("unit")
    assert (frame["effect"][["2-3", "3-1", "1-1"]] == 0).all()
    pairs = frame[frame["kind"] == "pair"]
    harmful = pairs.index[pairs["verdict"] == "worse without"]
    assert [{*name.split("+")} for name in harmful] == [{"2-3", "3-1"}]
    interaction = table["pair_interaction_accuracy"].sel(how="zero", subset="all")
    assert int((interaction < -0.3).sum()) == 1
    assert float(table["pair_interaction_accuracy_upper"].min()) < -0.2


@pytest.mark.full
def test_metrics_are_those_of_predictions_with_the_heads_disabled() -> None:
    """The witness: the model run by itself in the block of `headscope.disable`, scored by scikit-learn."""
    model, task = plant_task([(2, 3)], scale=0.1), make_task(41)
    evaluation = prepare_task(model, task, batch_tokens=64)
    assert len(evaluation.batches) > 3
    ablations = list_ablations(list_units(model, ["2-3", "1-2", "3"]), ["uniform", "zero"], {})
    outcomes = measure(evaluation, model, ablations)
    disabled = evaluation.gather(outcomes.disabled)
    for number, each in enumerate(ablations):
        predicted, losses = [], []
        for example in task.splits[TEST]:
            inputs = model.tokenizer(*example.texts, return_tensors="pt")
            with torch.no_grad(), disable(model, each.unit.name, each.how):
                logits = model.module(**inputs).logits[0]
            predicted.append(int(logits.argmax()))
            losses.append(float(-logits.log_softmax(-1)[task.labels.index(str(example.label))]))
        gold = np.array([task.labels.index(str(example.label)) for example in task.splits[TEST]])
        expected = compute_scores(task, np.array(predicted), gold) | {"loss": float(np.mean(losses))}
        sums = {name: values[number].sum(keepdims=True) for name, values in disabled.items()}
        for metric in evaluation.metrics:
            if metric.name in expected:
                assert metric.compute(sums).item() == pytest.approx(expected[metric.name], abs=1e-6)


@pytest.mark.parametrize("batch_tokens", [1, 64, 10_000])
def test_any_batches_give_the_same(batch_tokens: int) -> None:
    model, task = plant_task([(2, 3)]), make_task(23)
    ablations = list_ablations(list_units(model, ["2-3", "3-2", "2"]), ["uniform"], {"uniform": 2})
    expected = measure(prepare_task(model, task, batch_tokens=128), model, ablations)
    outcomes = measure(prepare_task(model, task, batch_tokens=batch_tokens), model, ablations)
    np.testing.assert_allclose(outcomes.whole, expected.whole, atol=1e-6)
    np.testing.assert_allclose(outcomes.disabled, expected.disabled, atol=1e-5)
    np.testing.assert_allclose(outcomes.norms, expected.norms, rtol=1e-5)


@pytest.mark.full
def test_a_run_that_was_killed_goes_on_to_the_last_bit() -> None:
    model, task = plant_task([(2, 3)]), make_task(23)
    evaluation = prepare_task(model, task, batch_tokens=64)
    ablations = list_ablations(list_units(model, ["2-3", "3-2"]), ["uniform"], {"uniform": 2})
    expected, capture = measure(evaluation, model, ablations), capture_model(model)
    for stop in (1, 6, 7, 10):
        outcomes = Outcomes.empty(evaluation, len(ablations))
        steps = measure_outcomes(capture, evaluation, ablations, Ways(), find_output_projections(capture), outcomes)
        for _ in range(stop):
            next(steps)
        resumed = Outcomes.from_sums(outcomes.as_sums())
        for _ in measure_outcomes(capture, evaluation, ablations, Ways(), find_output_projections(capture), resumed):
            pass
        for name in ("whole", "disabled", "squared_norms"):
            np.testing.assert_array_equal(getattr(resumed, name), getattr(expected, name))


@pytest.mark.parametrize("family", ["bert", "llama", "gpt2", "gemma2"])
def test_a_placebo_changes_each_token_as_much_as_its_unit_and_as_much_along_the_stream(family: str) -> None:
    module, tokenizer = tiny.make(family)
    model = Model.from_module(module.double(), tokenizer, name=family)
    capture, documents = capture_model(model), tiny.documents(5)
    projections, changes = find_output_projections(capture), {}
    inputs = tokenizer([list(documents[0].words)], is_split_into_words=True, return_tensors="pt")
    streams = record_pass(capture, inputs).find_streams(projections, projections)
    assert len(streams) == model.module.config.num_hidden_layers
    # Gemma 2 scales the output of a layer before it adds it, so that only the direction of the output counts.
    assert all(bool(stream.any()) == (family != "gemma2") for stream in streams.values())
    for unit in list_units(model, ["2-1", "2"]):
        for placebo in (0, 1, 2):
            edit = DisabledUnit(Ablation(unit, "zero", placebo), replacement.zero, projections, streams, 3)

            def see(z, layer, edit=edit):
                edited = edit(z, layer)
                if (layer.attention_type, layer.layer) in edit.ablation.unit.selection:
                    key, every = (layer.attention_type, layer.layer), torch.arange(layer.heads)
                    added = edit.project(edited - z, every, layer)
                    along = (added * (streams[key] + projections[key].apply(z, every))).sum(-1)
                    changes[edit.ablation.placebo] = edited - z, added.norm(dim=-1), along
                return edited

            with torch.no_grad(), capture.editing(see):
                module(**inputs)
        whole, *others = (changes[placebo] for placebo in (0, 1, 2))
        for change, norm, along in others:
            torch.testing.assert_close(norm, whole[1], rtol=1e-5, atol=1e-6)
            if (family, unit.name) != ("gemma2", "2"):  # zeros for a whole layer leave nothing across its output
                torch.testing.assert_close(along, whole[2], rtol=1e-5, atol=1e-6)
            assert float((change - whole[0]).abs().max()) > 0.01
        assert not torch.allclose(others[0][0], others[1][0])


def test_resampling_never_gives_a_text_its_own_output() -> None:
    model, task = plant_task([(2, 3)]), make_task(31)
    evaluation = prepare_task(model, task, batch_tokens=64)
    ways = prepare_ways(capture_model(model), evaluation, ["resample"])
    for item in range(evaluation.items):
        assert ways.donors[ways._choose_other(item)] != item


def test_the_sentences_of_a_pair_get_the_output_of_one_text_of_another_pair() -> None:
    """A pair that shares a sentence with another shares its donor as well."""
    texts = [("the dog sees", "the sees dog"), ("a cat walked", "a walked cat"), ("old dogs", "dogs old")]
    texts += [("the dog sees", "dog the sees")]
    pairs = [MinimalPair(str(number), *both, "order", "words", "syntax") for number, both in enumerate(texts)]
    model = make_language_model("gpt2")
    evaluation = prepare_pairs(SentenceReader(model), pairs, name="pairs")
    assert [evaluation.groups[item] for item in range(evaluation.items)] == [0, 0, 1, 1, 2, 2, 0]
    ways = prepare_ways(capture_model(model), evaluation, ["resample"])
    assert sorted(ways.donors) == [0, 1, 2]
    for batch in evaluation.batches:
        donors = ways.choose("resample", batch).outputs[next(iter(model.layers)), 1]
        by_group = {}
        for item, donor in zip(batch.items.tolist(), donors, strict=True):
            group = evaluation.groups[item]
            assert by_group.setdefault(group, donor) is donor
            assert (
                ways.donors[[each is donor for each in ways.outputs[next(iter(model.layers)), 1]].index(True)] != group
            )
    with pytest.raises(HeadscopeError, match=r"^pairs has one text or pair only, whose outputs nothing can replace"):
        prepare_ways(capture_model(model), prepare_pairs(SentenceReader(model), pairs[::3], name="pairs"), ["resample"])


def test_the_mean_is_over_the_tokens_of_the_task() -> None:
    model, task = plant_task([(2, 3)]), make_task(31)
    evaluation, capture, outputs = prepare_task(model, task, batch_tokens=64), capture_model(model), []
    ways = prepare_ways(capture, evaluation, ["mean"])

    def see(z, layer):
        if layer.layer == 2:
            outputs.append(z[0])
        return z

    with torch.no_grad(), capture.editing(see):
        for example in task.splits[TEST]:
            model.module(**model.tokenizer(*example.texts, return_tensors="pt"))
    expected = torch.cat(outputs, dim=1).double().mean(1)
    torch.testing.assert_close(ways.mean.pooled["encoder", 2], expected, atol=1e-6, rtol=0)


@pytest.mark.parametrize("family", ["bert", "llama"])
def test_an_estimate_is_the_derivative_of_the_effect(family: str) -> None:
    """A head that is disabled by a thousandth changes the log-probability by a thousandth of its estimate."""
    model = make_language_model(family)
    model.module.double()
    evaluation, capture = (
        prepare_texts(SentenceReader(model), tiny.documents(5), name="documents"),
        capture_model(model),
    )
    estimates = estimate_changes(capture, evaluation, ["uniform"], Ways())
    uniform = Ways().choose("uniform", evaluation.batches[0])
    for layer, head in ((1, 2), (2, 5)):
        kind = next(iter(model.layers))

        def shrink(z, where, layer=layer, head=head):
            if where.layer != layer:
                return z
            heads, edited = torch.tensor([head - 1]), z.clone()
            edited[:, heads] += 1e-3 * (uniform(z[:, heads], where, heads) - z[:, heads])
            return edited

        change = np.zeros(evaluation.items)
        for batch in evaluation.batches:
            with torch.no_grad():
                before = evaluation.quantify(batch, compute_logits(model, batch), None)[:, 0]
                with capture.editing(shrink):
                    after = evaluation.quantify(batch, compute_logits(model, batch), None)[:, 0]
            np.add.at(change, batch.items.numpy(), (after - before).numpy())
        np.testing.assert_allclose(change / 1e-3, estimates["uniform", (kind, layer)][head - 1], rtol=0.05, atol=2e-3)


def test_minimal_pairs_are_scored_as_by_themselves() -> None:
    model = make_language_model("gpt2")
    words = [document.words for document in tiny.documents(7) if len(document.words) > 2]
    pairs = [
        MinimalPair(f"p{n % 2}:{n}", " ".join(w), " ".join([*w[1:], w[0]]), f"p{n % 2}", "order", "syntax")
        for n, w in enumerate(words)
    ]
    evaluation = prepare_pairs(SentenceReader(model), pairs, name="pairs", batch_tokens=40)
    ablations = list_ablations(list_units(model, ["2-3"]), ["zero"], {})
    outcomes = measure(evaluation, model, ablations)
    with disable(model, "2-3", "zero"):
        expected = score_minimal_pairs(model, pairs)["difference"]
    examples = evaluation.gather(outcomes.disabled)
    np.testing.assert_allclose(examples["margin"][0], expected, atol=1e-4)
    np.testing.assert_array_equal(examples["right"][0], expected > 0)
    assert list(evaluation.subsets) == ["all", "field syntax", "phenomenon order", "paradigm p0", "paradigm p1"]


def test_minimal_pairs_of_one_sentence_are_left_out_and_counted() -> None:
    model, same = make_language_model("gpt2"), MinimalPair("p:1", "the dog", "the dog", "p")
    evaluation = prepare_pairs(
        SentenceReader(model), [same, MinimalPair("p:2", "the dog", "dog the", "p")], name="pairs"
    )
    assert evaluation.examples == ("p:2",)
    assert evaluation.skipped == {"minimal pairs of twice the same sentence": 1}
    with pytest.raises(CorpusError) as refused:
        prepare_pairs(SentenceReader(model), [same], name="pairs")
    assert str(refused.value) == "pairs has no pair of two sentences that differ; give other pairs."


def test_names_of_a_paradigm_a_phenomenon_and_all_do_not_collide() -> None:
    pairs = [
        MinimalPair("all:0", "a dog sees", "sees dog a", "all", "order"),
        MinimalPair("order:0", "a cat sees", "sees cat a", "order", "agreement"),
        MinimalPair("order:1", "the cat sees", "sees cat the", "order", "order"),
    ]
    subsets = prepare_pairs(SentenceReader(make_language_model("gpt2")), pairs, name="pairs").subsets
    assert {name: int(subset.sum()) for name, subset in subsets.items()} == {
        "all": 3, "phenomenon order": 2, "phenomenon agreement": 1, "paradigm all": 1, "paradigm order": 2,
    }  # fmt: skip


def test_other_labels_are_another_evaluation() -> None:
    model, task = plant_task([(2, 3)]), make_task(11)
    swapped = tuple(
        Example(e.name, e.texts, {"dog": "cat", "cat": "dog"}[str(e.label)], group=e.group) for e in task.splits[TEST]
    )
    other = Task("nouns", "classification", task.labels, {TEST: swapped}, "accuracy", positive="dog")
    assert prepare_task(model, task).sha256 != prepare_task(model, other).sha256


def test_a_head_has_one_name() -> None:
    units = list_units(plant_task([(2, 3)]), ["1-1", " 01-1", "2"])
    assert [unit.name for unit in units] == ["1-1", "2"]


def test_a_model_with_another_head_is_refused() -> None:
    examples = (Example("a", words=("dog", "sees"), tags=("dog", "cat")),)
    task = Task("tags", "tagging", ("cat", "dog"), {TEST: examples}, "accuracy")
    with pytest.raises(HeadscopeError, match="has a head for classification, and the task tags needs one for tagging"):
        prepare_task(plant_task([(2, 3)]), task)


def test_a_split_with_one_label_is_refused() -> None:
    task = make_task()
    same = tuple(example for example in task.splits[TEST] if example.label == "dog")
    with pytest.raises(HeadscopeError, match="has only the label 'dog', so accuracy is not defined on it"):
        prepare_task(plant_task([(2, 3)]), Task("nouns", "classification", ("cat", "dog"), {TEST: same}, "accuracy"))


def test_a_model_with_other_labels_is_refused() -> None:
    examples = tuple(Example(str(n), ("the dog sees",), label) for n, label in enumerate(("good", "bad")))
    task = Task("reviews", "classification", ("good", "bad"), {TEST: examples}, "accuracy")
    with pytest.raises(HeadscopeError, match="the task reviews has 'good', 'bad'; say which is which"):
        prepare_task(plant_task([(2, 3)]), task)


def test_a_model_without_a_language_model_head_is_refused() -> None:
    with pytest.raises(HeadscopeError, match="gives a sentence no probability"):
        prepare_texts(SentenceReader(plant_task([(2, 3)])), tiny.documents(3), name="documents")
