"""A page as it looks by day, by night and on a phone: what is wrong with it, and pictures of it."""

from typing import Final

from playwright.sync_api import Page, ViewportSize

from tests.browser.accessibility import broken_words, cut_words, overhang, violations
from tests.browser.pictures import picture

DESK: Final[ViewportSize] = {"width": 1280, "height": 800}
PHONE: Final[ViewportSize] = {"width": 390, "height": 844}
NARROW: Final[ViewportSize] = {"width": 320, "height": 640}
"""The least that WCAG asks for: a desk's page at four times its size."""


def look_around(page: Page, name: str) -> list[str]:
    """What is wrong with the page in either scheme and on a phone."""
    page.set_viewport_size(DESK)
    page.emulate_media(color_scheme="light", reduced_motion="reduce")
    picture(page, f"{name}-light")
    found = violations(page)
    page.emulate_media(color_scheme="dark")
    picture(page, f"{name}-dark")
    found += [f"dark: {violation}" for violation in violations(page, of_all_else=False)]
    page.set_viewport_size(PHONE)
    picture(page, f"{name}-phone-dark")
    found += [f"phone: {violation}" for violation in violations(page, of_colour=False)]
    page.emulate_media(color_scheme="light")
    picture(page, f"{name}-phone")
    found += broken_words(page)
    page.set_viewport_size(NARROW)
    found += [f"{overhang(page)} pixels too wide for a narrow screen"] if overhang(page) else []
    found += cut_words(page)
    found += broken_words(page)
    page.set_viewport_size(DESK)
    return [f"{name}: {trouble}" for trouble in found]
