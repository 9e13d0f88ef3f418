"""The cost of an epoch of `headscope tune`, as a ratio to a bare Trainer's with the same arguments.

    python benchmarks/tuning.py NEGATION [--rounds 3] [--examples 160] [--cpu] [--write docs/performance.md]

minilm on negation. Both train one epoch on the same batches, score the same splits and write the same checkpoint,
each in a process of its own, in turn, so that a machine that gets slower gets slower for both. Timed is what comes
after loading and tokenizing; the work of headscope alone at the end (the folder of the run, its hash,
``runs.json``) is reported separately.
"""

import argparse
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

from headscope.learn import training
from headscope.learn.negation import read_negation
from headscope.learn.splits import sample_training
from headscope.learn.task import Task
from headscope.learn.training_settings import Settings
from headscope.learn.tune import tune

BEGIN, END = "<!-- benchmarks/tuning.py writes from here -->", "<!-- to here, tuning -->"
WAYS = ("headscope", "bare")
CLOCK = time.process_time if "--cpu" in sys.argv else time.perf_counter


def main() -> None:
    """Time both ways in turn, print a line and, if asked to, put it into a page."""
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("negation", type=Path)
    arguments.add_argument("--rounds", type=int, default=3)
    arguments.add_argument("--examples", type=int, default=160)
    arguments.add_argument("--cpu", action="store_true", help="seconds of the processor, where others use it too")
    arguments.add_argument("--write", type=Path)
    arguments.add_argument("--way", choices=WAYS, help=argparse.SUPPRESS)
    given = arguments.parse_args()
    if given.way:
        task = sample_training(read_negation(given.negation), given.examples)
        print(*(_headscope(task) if given.way == "headscope" else _bare(task)))
        return
    report = _report(given)
    print(report)
    if given.write:
        page = given.write.read_text()
        given.write.write_text(f"{page.split(BEGIN)[0]}{BEGIN}\n\n{report}\n\n{END}{page.split(END)[1]}")


def _report(given: argparse.Namespace) -> str:
    seconds: dict[str, list[tuple[float, float]]] = {way: [] for way in WAYS}
    for number in range(given.rounds):
        for way in WAYS if number % 2 else WAYS[::-1]:
            seconds[way].append(_in_a_process(given, way))
            print(way, *seconds[way][-1], file=sys.stderr)
    ratios = [ours / bare for (ours, _), (bare, _) in zip(seconds["headscope"], seconds["bare"], strict=True)]
    ours, end, bare = (
        median(pair[0] for pair in seconds["headscope"]),
        median(pair[1] for pair in seconds["headscope"]),
        median(pair[0] for pair in seconds["bare"]),
    )
    return (
        "| what | against | seconds | against | ratio (least to most) | wanted |\n"
        "| --- | --- | ---: | ---: | ---: | --- |\n"
        f"| an epoch of `tune`, minilm, {given.examples} negations, {given.rounds} rounds | a bare Trainer's | "
        f"{ours:.2f} | {bare:.2f} | **{ours / bare:.2f}** ({min(ratios):.2f} to {max(ratios):.2f}) | at most 1.05 |\n"
        f"\nWriting the folder of the run at the end: {end:.2f} s."
    )


def _in_a_process(given: argparse.Namespace, way: str) -> tuple[float, float]:
    command = [sys.executable, __file__, str(given.negation), "--examples", str(given.examples), "--way", way]
    command += ["--cpu"] if given.cpu else []
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    loop, end = map(float, done.stdout.split()[-2:])
    return loop, end


def _headscope(task: Task) -> tuple[float, float]:
    """The seconds of one epoch, and those from there to the listed run."""
    ends: list[float] = []
    fit = training.fit

    def timed(*given: object, **further: object) -> training.Fitted:
        ends.append(CLOCK())
        fitted = fit(*given, **further)
        ends.append(CLOCK())
        return fitted

    training.fit = timed
    with tempfile.TemporaryDirectory() as folder:
        tune(task, "minilm", folder, Settings(epochs=1), seeds=[1])
        ends.append(CLOCK())
    return ends[1] - ends[0], ends[2] - ends[1]


def _bare(task: Task) -> tuple[float, float]:
    """The same with transformers alone, as in its examples."""
    import numpy as np
    from sklearn.metrics import accuracy_score, precision_recall_fscore_support
    from transformers import (
        AutoModelForTokenClassification,
        AutoTokenizer,
        DataCollatorForTokenClassification,
        Trainer,
        TrainingArguments,
        set_seed,
    )

    from headscope.capture.open.loading import source

    tokenizer = AutoTokenizer.from_pretrained(source("minilm"), add_prefix_space=True)

    def features(split: str) -> list[dict]:
        encoded_examples = []
        for example in task.splits[split]:
            encoded = tokenizer(list(example.words), is_split_into_words=True)
            tags = [None if word is None else example.tags[word] for word in encoded.word_ids()]
            encoded_examples.append({**encoded, "labels": [-100 if tag is None else int(tag) for tag in tags]})
        return (
            encoded_examples
            if split == "train"
            else sorted(encoded_examples, key=lambda example: len(example["input_ids"]))
        )

    def scores(prediction: object) -> dict[str, float]:
        is_scored = prediction.label_ids != -100
        predicted, gold = prediction.predictions[is_scored], prediction.label_ids[is_scored]
        precision, recall, f1, _ = precision_recall_fscore_support(gold, predicted, average="binary", zero_division=0.0)
        return {"precision": precision, "recall": recall, "f1": f1, "accuracy": accuracy_score(gold, predicted)}

    trained, scored = features("train"), {split: features(split) for split in ("validation", "test")}
    with tempfile.TemporaryDirectory() as folder:
        begin = CLOCK()
        set_seed(1)
        Trainer(
            model=AutoModelForTokenClassification.from_pretrained(source("minilm"), num_labels=2),
            args=TrainingArguments(
                output_dir=folder, seed=1, num_train_epochs=1, learning_rate=4e-5, per_device_train_batch_size=16,
                per_device_eval_batch_size=32, use_cpu=True, dataloader_pin_memory=False, eval_strategy="epoch",
                save_strategy="epoch", save_total_limit=2, metric_for_best_model="eval_validation_f1",
                logging_steps=20, report_to=[], disable_tqdm=True,
            ),
            train_dataset=trained,
            eval_dataset=scored,
            data_collator=DataCollatorForTokenClassification(tokenizer),
            processing_class=tokenizer,
            compute_metrics=scores,
            preprocess_logits_for_metrics=lambda logits, labels: logits.argmax(-1),
        ).train()  # fmt: skip
        return CLOCK() - begin, np.nan


if __name__ == "__main__":
    main()
