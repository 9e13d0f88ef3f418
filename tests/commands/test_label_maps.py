"""Labelling maps on a local page: what a key saves, what is refused, and what a second call goes on with."""

import csv
import json
import threading
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from queue import Queue

import pytest

import headscope
import tiny
from headscope.commands.patterns import labelling
from headscope.commands.patterns.annotate import annotate
from headscope.commands.patterns.labelling import prepare_maps, serve_maps
from headscope.commands.patterns.request import LabelMaps
from headscope.commands.progress import ignore_progress
from headscope.errors import CorpusError, HeadscopeError
from headscope.learn.map_labels import LabelledMaps, read_maps_to_label
from headscope.reducers.support.pattern_network import PATTERNS

TEXTS = [document for document in tiny.documents(23) if len(document.words) > 3]


@pytest.fixture(scope="module")
def maps(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("labels") / "maps"
    prepare_maps(LabelMaps(tiny.make("bert"), TEXTS, folder, maps=11, seed=5), ignore_progress)
    return folder


@pytest.fixture
def folder(maps: Path, tmp_path: Path) -> Path:
    for path in maps.glob("maps.*"):
        (tmp_path / path.name).write_bytes(path.read_bytes())
    return tmp_path


@contextmanager
def serve(folder: Path, **settings: int) -> Iterator[str]:
    """The address of the page of a folder, while it is served; it is told to finish at the end."""
    addresses: Queue[str] = Queue()
    summaries: Queue[str] = Queue()
    request = LabelMaps("no model", "no corpus", folder, **settings)
    thread = threading.Thread(target=lambda: summaries.put(serve_maps(request, addresses.put)))
    thread.start()
    url = addresses.get(timeout=30)
    try:
        yield url
    finally:
        ask(url, "finish", {})
        thread.join(timeout=30)
    assert not thread.is_alive()
    summaries.get(timeout=1)


def ask(url: str, path: str, body: object = None, **headers: str) -> dict:
    address, _, token = url.partition("?token=")
    data = None if body is None else json.dumps(body).encode()
    sent = urllib.request.Request(address + path, data, {"X-Headscope-Token": token} | headers)
    with urllib.request.urlopen(sent, timeout=30) as answer:
        return json.load(answer)


def refusal(url: str, path: str, body: object = None, **headers: str) -> tuple[int, str]:
    with pytest.raises(urllib.error.HTTPError) as refused:
        ask(url, path, body, **headers)
    with refused.value as answer:
        return answer.code, answer.read().decode()


def saved(folder: Path) -> list[tuple[str, str, str]]:
    rows = list(csv.DictReader((folder / "labels.csv").read_text().splitlines()))
    return [(row["map"], row["label"], row["second"]) for row in rows]


def test_maps_are_those_of_different_texts_and_heads(maps: Path) -> None:
    names = [each.name for each in read_maps_to_label(maps).maps]
    assert len({name.document for name in names}) == len(names) == 11
    heads = [(name.layer, name.head) for name in names]
    assert len(set(heads)) == min(11, len({*heads}))
    before = (maps / "maps.npz").read_bytes()
    prepare_maps(LabelMaps("no model", "no corpus", maps, maps=3), ignore_progress)
    assert (maps / "maps.npz").read_bytes() == before


def test_each_label_is_saved_at_once(folder: Path) -> None:
    with serve(folder) as url:
        state = ask(url, "state")
        assert state["maps"] == list(range(1, 12))
        assert [name for name, _ in state["patterns"]] == list(PATTERNS)
        image = ask(url, "map/3")
        assert len(image["values"]) == 48 * 48
        assert max(image["values"]) == 255
        ask(url, "label", {"map": 3, "label": "block"})
        assert saved(folder) == [("3", "block", "")]
        ask(url, "label", {"map": 1, "label": "vertical"})
        ask(url, "label", {"map": 3, "label": "diagonal"})
        assert saved(folder) == [("1", "vertical", ""), ("3", "diagonal", "")]
    with serve(folder) as url:  # a new page goes on
        assert ask(url, "state")["labels"] == {"1": "vertical", "3": "diagonal"}
        ask(url, "label", {"map": 1, "label": ""})
    assert saved(folder) == [("3", "diagonal", "")]


def test_a_second_pass_does_not_see_the_first(folder: Path) -> None:
    with serve(folder) as url:
        for number in (2, 4, 5, 8):
            ask(url, "label", {"map": number, "label": "block"})
    with serve(folder, second=3) as url:
        state = ask(url, "state")
        assert (len(state["maps"]), state["labels"], state["second"]) == (3, {}, True)
        assert {*state["maps"]} <= {2, 4, 5, 8}
        ask(url, "label", {"map": state["maps"][0], "label": "block"})
        ask(url, "label", {"map": state["maps"][1], "label": "vertical"})
        assert refusal(url, "label", {"map": 1, "label": "block"})[0] == 400
    assert sorted(second for _, _, second in saved(folder)) == ["", "", "block", "vertical"]
    assert {label for _, label, _ in saved(folder)} == {"block"}
    with pytest.raises(CorpusError) as refused:
        headscope.label_maps("no model", "no corpus", folder, second=7, progress=False)
    assert str(refused.value) == "7 maps were to be labelled a second time, and 4 are labelled; ask for fewer."


def test_others_than_the_page_are_refused(folder: Path) -> None:
    with serve(folder) as url:
        ours = (403, "only the page of headscope may ask this.")
        assert refusal(url, "label", {"map": 1, "label": "block"}, Origin="http://example.org") == ours
        assert refusal(url, "state", Host="example.org") == ours
        for body in ({"map": 99, "label": "block"}, {"map": 1, "label": "stripes"}, {"map": "x"}, [], 7):
            assert refusal(url, "label", body) == (400, "this is no label of a map.")
        assert refusal(url, "map/99")[0] == refusal(url, "../maps.csv")[0] == 404
    assert not (folder / "labels.csv").exists()


def test_a_page_without_its_token_is_refused(folder: Path) -> None:
    with serve(folder) as url:
        address, sentence = url.partition("?")[0], "open the address that headscope patterns gives, with its token."
        for path in ("", "state", "map/1", "?token=wrong"):
            assert refusal(address, path) == (403, sentence)
        assert refusal(address, "label", {"map": 1, "label": "block"}) == (403, sentence)
        assert refusal(address, "finish", {}) == (403, sentence)
        for opened in (url, f"{address}page.js"):
            with urllib.request.urlopen(opened, timeout=30) as answer:
                assert answer.status == 200
    assert not (folder / "labels.csv").exists()


def test_labels_that_others_write_meanwhile_are_kept(folder: Path) -> None:
    document, layer, head = vars(read_maps_to_label(folder).maps[4].name).values()
    with serve(folder) as url:
        assert ask(url, "label", {"map": 1, "label": "block"}) == {"labels": {"1": "block"}}
        with (folder / "labels.csv").open("a") as file:
            csv.writer(file, lineterminator="\n").writerow([5, document, layer, head, "vertical", "diagonal"])
        assert ask(url, "label", {"map": 2, "label": "block"})["labels"] == {
            "1": "block",
            "2": "block",
            "5": "vertical",
        }
        assert saved(folder) == [("1", "block", ""), ("2", "block", ""), ("5", "vertical", "diagonal")]
        damaged = (folder / "labels.csv").read_text().replace("vertical", "stripes")
        (folder / "labels.csv").write_text(damaged)
        code, sentence = refusal(url, "label", {"map": 3, "label": "block"})
        assert (code, "labels.csv:4: there is no pattern 'stripes'" in sentence) == (500, True)
        assert (folder / "labels.csv").read_text() == damaged


def test_a_folder_is_shown_by_one_command_at_a_time(folder: Path) -> None:
    with serve(folder), pytest.raises(HeadscopeError) as refused:
        annotate(folder)
    assert str(refused.value) == (
        f"another headscope command is writing to {folder}; wait until it has ended, or choose another place."
    )
    with serve(folder):
        pass


def test_a_folder_that_is_gone_is_not_written_anew(folder: Path) -> None:
    elsewhere = folder.with_name(f"{folder.name}-elsewhere")
    with serve(folder) as url:
        ask(url, "label", {"map": 1, "label": "block"})
        folder.rename(elsewhere)
        sentence = f"{folder} is gone, so no label can be saved; put it back, and label this map again."
        assert refusal(url, "label", {"map": 2, "label": "block"}) == (500, sentence)
        assert not folder.exists()
        elsewhere.rename(folder)
        ask(url, "label", {"map": 2, "label": "block"})
    assert saved(folder) == [("1", "block", ""), ("2", "block", "")]


def test_a_label_that_cannot_be_saved_is_said(folder: Path, monkeypatch) -> None:
    def fail(*arguments: object) -> None:
        raise HeadscopeError("the disk is full.")

    with serve(folder) as url:
        ask(url, "label", {"map": 1, "label": "block"})
        monkeypatch.setattr("headscope.commands.patterns.annotate.write_labels", fail)
        assert refusal(url, "label", {"map": 2, "label": "block"}) == (500, "the disk is full.")
        assert ask(url, "state")["labels"] == {"1": "block"}
    assert saved(folder) == [("1", "block", "")]


def test_the_function_says_how_many_are_labelled(folder: Path) -> None:
    def label(url: str) -> None:
        def press() -> None:
            ask(url, "label", {"map": 1, "label": "block"})
            ask(url, "finish", {})

        threading.Thread(target=press).start()

    summary = headscope.label_maps("no model", "no corpus", folder, ready=label, progress=False)
    assert summary == f"1 of 11 maps are labelled in {folder / 'labels.csv'}."


def test_the_command_shows_the_page_when_the_progress_has_ended(run, folder: Path, monkeypatch) -> None:
    def label(place: Path, *, second: int, seed: int, ready: Callable[[str], None]) -> LabelledMaps:
        assert (place, second, seed) == (folder, 3, 7)
        ready("http://here/")
        return read_maps_to_label(place).give(2, "block")

    monkeypatch.setattr(labelling, "annotate", label)
    code, printed, _ = run(
        "patterns", "no model", "no corpus", "--annotate", folder, "--second", 3, "--seed", 7, "--max-tokens", 13
    )
    assert (code, printed.splitlines()) == (
        0,
        [
            "Label the maps at http://here/ (Ctrl-C ends).",
            f"1 of 11 maps are labelled in {folder / 'labels.csv'}.",
        ],
    )
    code, _, complaint = run("patterns", "no model", "no corpus", "--annotate", folder, "--second", -1)
    assert (code, complaint) == (2, "headscope: --second is -1; give 0 or more.\n")


def test_too_many_maps_are_refused(tmp_path: Path) -> None:
    with pytest.raises(CorpusError, match=r"99 maps of as many documents were asked for, and the corpus has \d+;"):
        headscope.label_maps(tiny.make("bert"), TEXTS, tmp_path / "maps", maps=99, progress=False)
    with pytest.raises(HeadscopeError, match=r"^`maps` is 0; give 1 or more\.$"):
        headscope.label_maps(tiny.make("bert"), TEXTS, tmp_path / "maps", maps=0, progress=False)
    assert not (tmp_path / "maps").exists()
