"""Every question of a page with up to nine sentences, on two sizes of screen: what is cut, scrolls or is undefined.

``python benchmarks/screens.py ATLAS ...`` opens the pages of atlases in Chromium without a network, one after another,
and prints each fault with its address, and how many screens were looked at. The exit code is 1 if there is a fault.
"""

import sys
from pathlib import Path

from playwright.sync_api import Page, sync_playwright

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))
from view.screen import find_faults, settle

SIZES = ((1440, 900), (1280, 720))
SENTENCES = 9


def visit(page: Page, faults: list[str]) -> int:
    """Look at every screen of a page, add what is wrong with it to `faults`, and return how many screens there are."""
    screens = 0
    questions = page.locator("#variable option").evaluate_all("(options) => options.map((option) => option.value)")
    for question in questions:
        page.locator("#variable").select_option(question)
        settle(page)
        for sentence in range(max(1, min(SENTENCES, page.locator("#chips button").count()))):
            if sentence:
                page.locator("#chips button").nth(sentence).click()
                settle(page)
            screens += 1
            faults += [f"{page.url.partition('#')[2]}: {fault}" for fault in find_faults(page)]
    return screens


def main(atlases: list[Path]) -> int:
    """Print the faults of each page, and return the exit code."""
    faults: list[str] = []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=["--no-sandbox"])
        for atlas in atlases:
            for width, height in SIZES:
                page = browser.new_context(offline=True, viewport={"width": width, "height": height}).new_page()
                before = len(faults)
                page.on("pageerror", lambda error: faults.append(str(error)))
                page.on("console", lambda line: faults.append(line.text) if line.type in ("error", "warning") else None)
                page.goto((atlas / "atlas.html").resolve().as_uri())
                settle(page)
                screens = visit(page, faults)
                print(f"{atlas}, {width} x {height}: {screens} screens, {len(faults) - before} faults", flush=True)
                print(*faults[before:], sep="\n", flush=True)
                page.context.close()
        browser.close()
    return bool(faults)


if __name__ == "__main__":
    sys.exit(main([Path(each) for each in sys.argv[1:]]))
