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
from headscope.files import LOCK, reserve
from headscope.learn import training
from headscope.learn.training_settings import Settings
from headscope.learn.tune import tune

Progress = Callable[[str, int, int], None]


def weights(group: runs.Runs, seed: int) -> bytes:
    return (group.folder / f"seed-{seed}" / "model.safetensors").read_bytes()


def killed_at(share: float, label: str = "seed-1") -> Progress:
    """A report in the midst of which the process is killed."""

    def report(what: str, done: int, total: int) -> None:
        if label in what and done > share * total:
            raise KeyboardInterrupt

    return report


@pytest.mark.parametrize("share", [0.2, 0.7], ids=["in the first epoch", "in the third"])
def test_a_killed_run_goes_on_and_ends_as_if_nothing_had_happened(tuned, model, tmp_path, share) -> None:
    with pytest.raises(KeyboardInterrupt):
        tune(toys.tagging(), model, tmp_path, toys.FAST, seeds=[1], progress=killed_at(share))
    unfinished = tmp_path / ".seed-1.unfinished"
    whole = list(unfinished.glob("checkpoint-*"))
    assert len(whole) == int(share * toys.FAST.epochs)
    (unfinished / "checkpoint-97").mkdir()
    (unfinished / "checkpoint-97" / "model.safetensors").write_bytes(b"half")
    with pytest.raises(headscope.HeadscopeError, match="lists no finished run"):
        runs.read(tmp_path)

    seen: list[int] = []
    again = tune(
        toys.tagging(), model, tmp_path, toys.FAST, seeds=[1], resume=True,
        progress=lambda label, done, total: seen.append(done) if total else None,
    ).task  # fmt: skip
    assert seen[0] == (seen[-1] // toys.FAST.epochs) * len(whole)
    assert weights(again, 1) == weights(tuned.task, 1)
    assert asdict(again.runs[0]) == asdict(tuned.task.runs[0])
    assert sorted(path.name for path in tmp_path.iterdir()) == ["runs.json", "seed-1"]


def test_a_run_that_was_moved_but_not_listed_is_listed(tuned, model, tmp_path, monkeypatch) -> None:
    write = runs.write

    def killed(listed: runs.Runs) -> Path:
        if listed.runs:
            raise KeyboardInterrupt
        return write(listed)

    monkeypatch.setattr(runs, "write", killed)
    with pytest.raises(KeyboardInterrupt):
        tune(toys.tagging(), model, tmp_path, toys.FAST, seeds=[1])
    assert (tmp_path / "seed-1").is_dir()
    monkeypatch.undo()
    again = tune(toys.tagging(), model, tmp_path, toys.FAST, seeds=[1], resume=True).task
    assert weights(again, 1) == weights(tuned.task, 1)
    assert asdict(again.runs[0]) == asdict(tuned.task.runs[0])
    assert sorted(path.name for path in tmp_path.iterdir()) == ["runs.json", "seed-1"]


def test_finished_runs_are_kept_and_further_seeds_are_added(tuned, model, tmp_path) -> None:
    first = tune(toys.tagging(), model, tmp_path, toys.FAST, seeds=[2]).task
    written = (first.folder / "seed-2" / "model.safetensors").stat()
    both = tune(toys.tagging(), model, tmp_path, toys.FAST, seeds=[1, 2], resume=True).task
    assert (first.folder / "seed-2" / "model.safetensors").stat() == written
    assert [asdict(run) for run in both.runs] == [asdict(run) for run in tuned.task.runs]
    assert runs.read(tmp_path) == both


def test_a_loss_that_is_no_number_ends_the_run_and_no_other(model, tmp_path, monkeypatch) -> None:
    arguments = training._training_arguments

    def steep(folder: Path, seed: int, *rest: object) -> object:
        settings = arguments(folder, seed, *rest)
        settings.learning_rate = 1e30 if seed == 3 else settings.learning_rate
        return settings

    monkeypatch.setattr(training, "_training_arguments", steep)
    with pytest.raises(headscope.HeadscopeError) as refused:
        tune(toys.tagging(), model, tmp_path, toys.FAST, seeds=[1, 3, 2])
    assert str(refused.value) == (
        "the loss of seed-3 is nan in epoch 1 (by step 20 of 136); lower the learning rate, now 0.007, and name "
        "another folder if this one has finished runs."
    )
    assert [run.seed for run in runs.read(tmp_path).runs] == [1]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["runs.json", "seed-1"]


def test_a_last_step_that_goes_wrong_is_seen_before_its_weights_are_kept(model, tmp_path) -> None:
    """The loss of the only step is taken before the weights are moved."""
    with pytest.raises(
        headscope.HeadscopeError, match=r"^the loss of seed-1 is (nan|inf) in epoch 1 \(by step 1 of 1\);"
    ):
        tune(toys.tagging(), model, tmp_path, Settings(1, learning_rate=1e30, batch_size=101), seeds=[1])
    assert [path.name for path in tmp_path.iterdir()] == ["runs.json"]


@pytest.mark.parametrize("limit", [50_000, 200_000], ids=["weights", "the optimizer's state"])
def test_a_full_disk_is_told_and_gone_on_from(tuned, model, tmp_path, limit) -> None:
    """The system lets no file be longer than `limit`, whoever writes it."""
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limits[1]))
    try:
        with pytest.raises(headscope.HeadscopeError) as refused:
            tune(toys.tagging(), model, tmp_path, toys.FAST, seeds=[2])
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert str(refused.value).startswith(f"seed-2 could not be written to {tmp_path / '.seed-2.unfinished'} (")
    assert str(refused.value).endswith("); free some space and add --resume to go on.")
    again = tune(toys.tagging(), model, tmp_path, toys.FAST, seeds=[2], resume=True).task
    assert weights(again, 2) == weights(tuned.task, 2)


def test_two_at_once_are_refused(model, tmp_path) -> None:
    out, steps = tmp_path / "out", []
    with reserve(out, out / LOCK), pytest.raises(headscope.HeadscopeError) as refused:
        tune(toys.tagging(), model, out, toys.FAST, seeds=[1], progress=lambda step, done, total: steps.append(step))
    assert str(refused.value) == (
        f"another headscope command is writing to {out}; wait until it has ended, or choose another place."
    )
    assert steps == []
    assert not out.exists()


def test_what_a_kill_left_of_a_finished_run_is_removed(tuned, model, tmp_path) -> None:
    shutil.copytree(tuned.task.folder, tmp_path, dirs_exist_ok=True)
    (tmp_path / ".seed-2.unfinished" / "checkpoint-34").mkdir(parents=True)
    (tmp_path / ".runs.abcdefgh.json").write_text("{")
    again = tune(toys.tagging(), model, tmp_path, toys.FAST, seeds=[1], resume=True).task
    assert again.runs == tuned.task.runs
    assert sorted(path.name for path in tmp_path.iterdir()) == ["control", "runs.json", "seed-1", "seed-2"]


def test_the_files_of_a_task_may_lie_elsewhere(tuned, model) -> None:
    task = toys.tagging()
    splits = {
        split: tuple(replace(example, name=f"/elsewhere/{example.name}") for example in examples)
        for split, examples in task.splits.items()
    }
    again = tune(replace(task, splits=splits), model, tuned.task.folder, toys.FAST, seeds=[1, 2], resume=True).task
    assert again == tuned.task


def test_a_checkpoint_that_is_damaged_is_named(model, tmp_path) -> None:
    with pytest.raises(KeyboardInterrupt):
        tune(toys.tagging(), model, tmp_path, toys.FAST, seeds=[1], progress=killed_at(0.4))
    unfinished = tmp_path / ".seed-1.unfinished"
    (checkpoint,) = unfinished.glob("checkpoint-*")
    (checkpoint / "optimizer.pt").write_bytes(b"half")
    with pytest.raises(headscope.HeadscopeError) as refused:
        tune(toys.tagging(), model, tmp_path, toys.FAST, seeds=[1], resume=True)
    assert str(refused.value).startswith(f"seed-1 cannot go on from {checkpoint} (")
    assert str(refused.value).endswith(f"); remove {unfinished} and add --resume, to tune it again.")


def test_a_checkpoint_without_a_whole_state_is_removed_and_one_that_cannot_be_read_is_kept(tmp_path) -> None:
    for name, state in {5: '{"global_step": 5}', 6: '{"global_step": 1e999}', 7: "[" * 5000, 8: None}.items():
        (tmp_path / f"checkpoint-{name}").mkdir()
        if state is not None:
            (tmp_path / f"checkpoint-{name}" / "trainer_state.json").write_text(state)
    assert training._find_last_checkpoint(tmp_path) == str(tmp_path / "checkpoint-5")
    assert [path.name for path in tmp_path.iterdir()] == ["checkpoint-5"]
    state = tmp_path / "checkpoint-5" / "trainer_state.json"
    state.unlink()
    state.mkdir()
    with pytest.raises(headscope.HeadscopeError) as refused:
        training._find_last_checkpoint(tmp_path)
    assert str(refused.value) == f"{state} is a folder, and a file is wanted; name one in it."
    assert state.is_dir()
