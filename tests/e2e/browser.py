"""A real browser, looking at a page as a person would."""

import os
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Final

_NAMES: Final = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
_PLACES: Final = (
    "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
    "/Applications/Chromium.app/Contents/MacOS/Chromium",
)
_TIMEOUT: Final = 60.0
_FLAGS: Final = (
    "--headless",
    "--no-sandbox",  # it sees nothing but our own pages, and root cannot have the sandbox
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-quic",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-features=OptimizationHints,MediaRouter",
    "--no-first-run",
    "--no-default-browser-check",
    "--hide-scrollbars",
    "--enable-logging=stderr",
    "--virtual-time-budget=4000",
)


def find_browser() -> str | None:
    """The browser's program: what LOWKIQ_TEST_BROWSER names, else a Chromium or Chrome of this machine."""
    named = os.environ.get("LOWKIQ_TEST_BROWSER")
    found = [shutil.which(name) for name in ([named] if named else _NAMES)]
    return next((path for path in (*found, *_PLACES) if path and Path(path).exists()), None)


class Browser:
    """Opens pages one by one, each with nothing remembered."""

    def __init__(self, program: str) -> None:
        self._program = program

    def look(self, url: str, picture: Path) -> "Seen":
        """Open the page and take a picture of it."""
        # Both at once is more than it can do.
        page = self._run("--dump-dom", url)
        self._run(f"--screenshot={picture}", "--window-size=1200,700", url)
        return Seen(page.stdout, [line for line in page.stderr.splitlines() if "CONSOLE" in line])

    def _run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        with tempfile.TemporaryDirectory(prefix="lowkiq-browser-", ignore_cleanup_errors=True) as profile:
            return subprocess.run(
                [self._program, *_FLAGS, f"--user-data-dir={profile}", *arguments],
                capture_output=True,
                text=True,
                timeout=_TIMEOUT,
                check=True,
            )


class Seen:
    """What the browser made of a page."""

    def __init__(self, page: str, complaints: list[str]) -> None:
        self.page = page
        """The document, after styles and scripts."""
        self.complaints = complaints
        """What its console says: errors, and what the page's own policy forbids."""
