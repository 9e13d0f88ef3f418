"""What may happen to tuning on the way: kills, full disks, losses that are no numbers, others at work in the folder."""

import resource
import shutil
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path

import pytest

import headscope
import toys
from headscope import runs
from headscope.learn import training
from headscope.learn.folder import alone
from headscope.learn.tune import tune

Progress = Callable[[str, int, int], None]


def weights(family: runs.Runs, seed: int) -> bytes:
    return (family.folder / f"seed-{seed}" / "model.safetensors").read_bytes()


def killed_at(share: float, stage: str = "seed-1") -> Progress:
    """A report in the midst of which the process is killed."""

    def report(what: str, done: int, total: int) -> None:
        if stage in what and done > share * total:
            raise KeyboardInterrupt

    return report


@pytest.mark.parametrize("share", [0.2, 0.7], ids=["in the first epoch", "in the third"])
def test_a_killed_run_goes_on_and_ends_as_if_nothing_had_happened(made, model, tmp_path, share) -> None:
    with pytest.raises(KeyboardInterrupt):
        tune(toys.tagging(), model, tmp_path, seeds=[1], progress=killed_at(share), **toys.FAST)
    unfinished = tmp_path / ".seed-1.unfinished"
    whole = list(unfinished.glob("checkpoint-*"))
    assert len(whole) == int(share * 3)
    (unfinished / "checkpoint-97").mkdir()
    (unfinished / "checkpoint-97" / "model.safetensors").write_bytes(b"half")
    with pytest.raises(headscope.HeadscopeError, match="lists no finished run"):
        runs.read(tmp_path)

    seen: list[int] = []
    again = tune(
        toys.tagging(), model, tmp_path, seeds=[1], resume=True, **toys.FAST,
        progress=lambda stage, done, total: seen.append(done) if total else None,
    ).task  # fmt: skip
    assert seen[0] == (seen[-1] // 3) * len(whole)
    assert weights(again, 1) == weights(made.task, 1)
    assert asdict(again.runs[0]) == asdict(made.task.runs[0])
    assert sorted(path.name for path in tmp_path.iterdir()) == ["runs.json", "seed-1"]


def test_a_run_that_was_moved_but_not_listed_is_listed(made, model, tmp_path, monkeypatch) -> None:
    write = runs.write

    def killed(of: runs.Runs) -> Path:
        if of.runs:
            raise KeyboardInterrupt
        return write(of)

    monkeypatch.setattr(runs, "write", killed)
    with pytest.raises(KeyboardInterrupt):
        tune(toys.tagging(), model, tmp_path, seeds=[1], **toys.FAST)
    assert (tmp_path / "seed-1").is_dir()
    monkeypatch.undo()
    again = tune(toys.tagging(), model, tmp_path, seeds=[1], resume=True, **toys.FAST).task
    assert weights(again, 1) == weights(made.task, 1)
    assert asdict(again.runs[0]) == asdict(made.task.runs[0])
    assert sorted(path.name for path in tmp_path.iterdir()) == ["runs.json", "seed-1"]


def test_finished_runs_are_kept_and_further_seeds_are_added(made, model, tmp_path) -> None:
    first = tune(toys.tagging(), model, tmp_path, seeds=[2], **toys.FAST).task
    written = (first.folder / "seed-2" / "model.safetensors").stat()
    both = tune(toys.tagging(), model, tmp_path, seeds=[1, 2], resume=True, **toys.FAST).task
    assert (first.folder / "seed-2" / "model.safetensors").stat() == written
    assert [asdict(run) for run in both.runs] == [asdict(run) for run in made.task.runs]
    assert runs.read(tmp_path) == both


def test_a_loss_that_is_no_number_ends_the_run_and_no_other(model, tmp_path, monkeypatch) -> None:
    arguments = training._arguments

    def steep(folder: Path, seed: int, *rest: object) -> object:
        made = arguments(folder, seed, *rest)
        made.learning_rate = 1e30 if seed == 3 else made.learning_rate
        return made

    monkeypatch.setattr(training, "_arguments", steep)
    with pytest.raises(headscope.HeadscopeError) as refused:
        tune(toys.tagging(), model, tmp_path, seeds=[1, 3, 2], **toys.FAST)
    assert str(refused.value) == (
        "the loss of seed-3 is nan in epoch 1 (by step 20 of 102); lower the learning rate, now 0.02, and name another "
        "folder if this one has finished runs."
    )
    assert [run.seed for run in runs.read(tmp_path).runs] == [1]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["runs.json", "seed-1"]


def test_a_last_step_that_goes_wrong_is_seen_before_its_weights_are_kept(model, tmp_path) -> None:
    """The loss of the only step is taken before the weights are moved."""
    with pytest.raises(
        headscope.HeadscopeError, match=r"^the loss of seed-1 is (nan|inf) in epoch 1 \(by step 1 of 1\);"
    ):
        tune(toys.tagging(), model, tmp_path, seeds=[1], epochs=1, learning_rate=1e30, batch_size=101)
    assert [path.name for path in tmp_path.iterdir()] == ["runs.json"]


@pytest.mark.parametrize("limit", [50_000, 200_000], ids=["weights", "the optimizer's state"])
def test_a_full_disk_is_told_and_gone_on_from(made, model, tmp_path, limit) -> None:
    """The system lets no file be longer than `limit`, whoever writes it."""
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limits[1]))
    try:
        with pytest.raises(headscope.HeadscopeError) as refused:
            tune(toys.tagging(), model, tmp_path, seeds=[2], **toys.FAST)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert str(refused.value).startswith(f"seed-2 could not be written to {tmp_path / '.seed-2.unfinished'} (")
    assert str(refused.value).endswith("); free some space and add --resume to go on.")
    again = tune(toys.tagging(), model, tmp_path, seeds=[2], resume=True, **toys.FAST).task
    assert weights(again, 2) == weights(made.task, 2)


def test_two_at_once_are_refused(model, tmp_path) -> None:
    out = tmp_path / "out"
    with alone(out), pytest.raises(headscope.HeadscopeError) as refused:
        tune(toys.tagging(), model, out, seeds=[1], **toys.FAST)
    assert str(refused.value) == (
        f"another `headscope tune` is at work in {out}; wait until it has ended, or name another folder."
    )
    assert list(out.iterdir()) == []


def test_what_a_kill_left_of_a_finished_run_is_removed(made, model, tmp_path) -> None:
    shutil.copytree(made.task.folder, tmp_path, dirs_exist_ok=True)
    (tmp_path / ".seed-2.unfinished" / "checkpoint-34").mkdir(parents=True)
    (tmp_path / ".runs.abcdefgh.json").write_text("{")
    again = tune(toys.tagging(), model, tmp_path, seeds=[1], resume=True, **toys.FAST).task
    assert again.runs == made.task.runs
    assert sorted(path.name for path in tmp_path.iterdir()) == ["control", "runs.json", "seed-1", "seed-2"]


def test_the_files_of_a_task_may_lie_elsewhere(made, model) -> None:
    task = toys.tagging()
    splits = {
        split: tuple(replace(one, name=f"/elsewhere/{one.name}") for one in examples)
        for split, examples in task.splits.items()
    }
    moved = tune(replace(task, splits=splits), model, made.task.folder, seeds=[1, 2], resume=True, **toys.FAST).task
    assert moved == made.task


def test_a_checkpoint_that_is_damaged_is_named(model, tmp_path) -> None:
    with pytest.raises(KeyboardInterrupt):
        tune(toys.tagging(), model, tmp_path, seeds=[1], progress=killed_at(0.4), **toys.FAST)
    unfinished = tmp_path / ".seed-1.unfinished"
    (checkpoint,) = unfinished.glob("checkpoint-*")
    (checkpoint / "optimizer.pt").write_bytes(b"half")
    with pytest.raises(headscope.HeadscopeError) as refused:
        tune(toys.tagging(), model, tmp_path, seeds=[1], resume=True, **toys.FAST)
    assert str(refused.value).startswith(f"seed-1 cannot go on from {checkpoint} (")
    assert str(refused.value).endswith(f"); remove {unfinished} and add --resume, to tune it anew.")
