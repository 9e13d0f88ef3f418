"""The keys of the page on which maps are labelled, in a browser, with answers in place of the server's."""

import json

import pytest

from headscope.reducers.support.pattern_network import PATTERNS
from headscope.view.annotation import read_page
from view.parsed import Browse, Page

MAPS = [4, 11, 6]

SERVER = """<script>
const asked = [], stored = STATE;
const answers = (path, body) => {
  if (path === "state") return structuredClone(stored);
  if (path.startsWith("map/")) return { values: Array(48 * 48).fill(51), ends: [0.5, 1] };
  asked.push(body);
  if (body.label) stored.labels[body.map] = body.label; else delete stored.labels[body.map];
  return { labels: { ...stored.labels } };
};
window.fetch = async (path, options) => {
  const body = options?.body ? JSON.parse(options.body) : null;
  const ok = !(body && body.label === "REFUSED");
  return { ok, json: async () => answers(path, body), text: async () => "the disk is full" };
};
</script>"""

PRESS = """
const keys = KEYS;
const wait = () => new Promise((done) => setTimeout(done, 20));
await wait();
for (const key of keys) {
  document.dispatchEvent(new KeyboardEvent("keydown", { key }));
  await wait();
}
document.body.dataset.asked = JSON.stringify(asked);
"""


def press(browse: Browse, keys: list[str], *, labels: dict[str, str] | None = None, refused: str = "nothing") -> Page:
    """The page after these keys."""
    state = {"maps": MAPS, "labels": labels or {}, "second": False, "patterns": [*PATTERNS.items()]}
    server = SERVER.replace("STATE", json.dumps(state)).replace("REFUSED", refused)
    page = read_page("page.html").decode()
    head = page[page.index("<link") : page.index("</head>")]
    script = f"<script>{read_page('page.js').decode()}</script>"
    text = page.replace(head, server).replace('<script src="page.js"></script>', script)
    return browse(text, script=PRESS.replace("KEYS", json.dumps(keys)))


def asked(page: Page) -> list[tuple[int, str]]:
    ((attributes, _),) = page.find("body")
    return [(each["map"], each["label"]) for each in json.loads(attributes["data-asked"])]


def text(page: Page, tag: str, name: str) -> str:
    ((_, text),) = page.find(tag, id=name)
    return text


def test_a_key_labels_the_map_and_goes_on(browse: Browse) -> None:
    names = [*PATTERNS]
    page = press(browse, ["1", "3"])
    assert asked(page) == [(4, names[0]), (11, names[2])]
    assert text(page, "h1", "number") == "Map 3 of 3"
    assert text(page, "p", "progress") == "2 of 3 labelled"
    assert text(page, "p", "message") == "Saved."


def test_arrows_go_back_and_0_takes_a_label_away(browse: Browse) -> None:
    page = press(browse, ["2", "4", "ArrowLeft", "0", "ArrowLeft"])
    assert asked(page) == [(4, [*PATTERNS][1]), (11, [*PATTERNS][3]), (11, "")]
    assert text(page, "h1", "number") == "Map 1 of 3"
    assert text(page, "p", "progress") == "1 of 3 labelled"
    pressed = [text for attributes, text in page.find("button") if attributes.get("aria-pressed") == "true"]
    assert len(pressed) == 1
    assert [*PATTERNS][1] in pressed[0]


@pytest.mark.parametrize("key", ["6", "9", "x", "Enter"])
def test_other_keys_do_nothing(browse: Browse, key: str) -> None:
    page = press(browse, [key, "5"])
    assert asked(page) == [(4, [*PATTERNS][4])]


def test_a_page_goes_on_with_the_first_map_without_a_label(browse: Browse) -> None:
    page = press(browse, [], labels={"4": "block", "6": "block"})
    assert text(page, "h1", "number") == "Map 2 of 3"


def test_a_label_that_is_not_saved_is_said_and_not_shown(browse: Browse) -> None:
    page = press(browse, ["4"], refused=[*PATTERNS][3])
    assert text(page, "p", "message") == "The label was not saved: the disk is full"
    assert text(page, "h1", "number") == "Map 1 of 3"
    assert text(page, "p", "progress") == "0 of 3 labelled"
