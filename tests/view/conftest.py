"""A browser that has no network."""

import base64
import hashlib
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from view.parsed import Browse, Page

WATCH = """<script>
const failed = (what) => document.documentElement.setAttribute("data-error", what);
addEventListener("error", (event) => failed(event.message));
addEventListener("securitypolicyviolation", (event) => failed(event.blockedURI));
</script>"""


@pytest.fixture
def browse(tmp_path: Path) -> Browse:
    """Opens a page in a headless browser, runs a script after its own, and returns what then stands there."""
    chromium = shutil.which("chromium")
    if chromium is None and os.environ.get("CI") == "true":
        pytest.fail("CI is true and there is no chromium to run the page's script: apt-get install chromium.")
    if chromium is None:
        pytest.skip("there is no chromium to run the page's script; apt-get install chromium.")

    def opened(text: str, *, address: str = "", script: str = "", width: int | None = None, dark: bool = False) -> Page:
        target = tmp_path / "atlas.html"
        # The page's policy runs its own script alone; ours is added to it.
        digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
        text = text.replace("script-src ", f"script-src 'sha256-{digest}' ", 1)
        text = text.replace("<head>", f"<head>{WATCH}").replace("</body>", f"<script>{script}</script></body>")
        target.write_text(text, encoding="utf-8")
        if width:
            # A window cannot be as narrow as a telephone, a frame can; it tells us what it measured.
            target = tmp_path / "frame.html"
            target.write_text(
                "<script>addEventListener('message', (event) => document.body.dataset.seen = event.data)</script>"
                f"<iframe src='atlas.html' width='{width}' height='800' style='border: 0'></iframe>"
            )
        command = [chromium, "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-sync"]
        command += ["--disable-background-networking", "--disable-component-update", "--virtual-time-budget=2000"]
        command += ["--blink-settings=preferredColorScheme=0"] * dark
        command += [f"--user-data-dir={tmp_path / 'profile'}", "--dump-dom", f"file://{target}{address}"]
        run = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
        parsed = Page(run.stdout)
        assert parsed.find("html")[0][0].get("data-error") is None
        return parsed

    return opened
