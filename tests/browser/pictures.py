"""Pictures of pages for people to look at, where LOWKIQ_TEST_PICTURES names a folder for them."""

import os
from pathlib import Path

from playwright.sync_api import Page


def picture(page: Page, name: str) -> None:
    """Take one of the whole page."""
    folder = os.environ.get("LOWKIQ_TEST_PICTURES")
    if folder:
        page.screenshot(path=Path(folder) / f"{name}.png", full_page=True)
