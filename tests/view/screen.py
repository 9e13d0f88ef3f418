"""What a screen of a page shows once it is drawn, and what is wrong with it."""

import playwright.sync_api as playwright

DRAWN = """new Promise((done, fail) => {
  setTimeout(() => fail(new Error("the browser has drawn nothing for 30 seconds")), 30000);
  requestAnimationFrame(() => requestAnimationFrame(() => requestIdleCallback(done)));
})"""
"""Wait for the second frame, and until the page has nothing more to do; a script has no limit of its own."""


def settle(page: playwright.Page) -> None:
    """Wait until the page has drawn what it was asked for."""
    page.evaluate(DRAWN)
    page.locator('[aria-busy="true"]').first.wait_for(state="detached")
    page.evaluate(DRAWN)


def open_tab(page: playwright.Page | playwright.Frame, name: str) -> None:
    """Open a tab of a page, or of the frame that a page is in."""
    page.locator(f"#tab-{name}").click()


def find_cut(page: playwright.Page) -> list[str]:
    """Words of the sentence outside of its place, buttons outside of the grid, and what has no room there."""
    return page.evaluate("""() => {
        const inside = (node, place) => {
            const [a, b] = [node.getBoundingClientRect(), place.getBoundingClientRect()];
            return a.left >= b.left - 1 && a.right <= b.right + 1 && a.top >= b.top - 1 && a.bottom <= b.bottom + 1;
        };
        const [stage, overview] = ["stage", "overview"].map((id) => document.getElementById(id));
        const parts = [...stage.querySelectorAll("text")].map((node) => [node, stage]);
        parts.push(...[...document.querySelectorAll("#grid button")].map((node) => [node, overview]));
        const cut = parts.filter(([node, place]) => !inside(node, place)).map(([node]) => node);
        const buttons = [...document.querySelectorAll("#grid button")];
        const numbers = [...document.querySelectorAll("#grid thead span:not(.unseen)")];
        const touches = (node, at) => at && node.getBoundingClientRect().left <
            numbers[at - 1].getBoundingClientRect().right;
        const narrow = [...buttons.filter((node) => node.scrollWidth > node.clientWidth), ...numbers.filter(touches)];
        const full = overview.scrollHeight > overview.clientHeight ? [overview] : [];
        return [...cut, ...narrow, ...full].map((node) => node.textContent || node.title);
    }""")


def find_faults(page: playwright.Page) -> list[str]:
    """What is cut, what makes the page scroll, and a value that is not there."""
    sizes = page.evaluate("[document.documentElement.scrollWidth, document.documentElement.scrollHeight]")
    rooms = (page.viewport_size["width"], page.viewport_size["height"])
    scrolls = [f"{size} pixels in {room}" for size, room in zip(sizes, rooms, strict=True) if size > room]
    undefined = [line for line in page.locator("body").inner_text().splitlines() if "undefined" in line]
    return [*find_cut(page), *scrolls, *undefined]
