"""The program of a browser on this machine."""

import os
import shutil
from pathlib import Path
from typing import Final

_NAMES: Final = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
_PLACES: Final = (
    "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
    "/Applications/Chromium.app/Contents/MacOS/Chromium",
)


def find_browser() -> str | None:
    """The browser's program: the one that LOWKIQ_TEST_BROWSER names, else a Chromium or Chrome of this machine."""
    named = os.environ.get("LOWKIQ_TEST_BROWSER")
    found = [shutil.which(name) for name in ([named] if named else _NAMES)]
    return next((path for path in (*found, *_PLACES) if path and Path(path).exists()), None)
