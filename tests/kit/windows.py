"""A browser of this machine, and windows of it that know nothing of each other."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, Final, TypeAlias

import pytest
from playwright.sync_api import Browser, ConsoleMessage, Page, expect, sync_playwright

from tests.kit.chromium import find_browser

PATIENCE: Final = 120_000.0
"""Milliseconds that a page may take on a machine that has other things to do.

The local cloud begins with one environment of the function for each request of a page's, and unpacks all of them at
once: some 30 s where the machine is busy.
"""

_OFF: Final = (
    *("WebUIOmniboxPopup", "WebUIOmniboxAimPopup"),
    # As Playwright has them: the switch takes the place of its own.
    *("AvoidUnnecessaryBeforeUnloadCheckSync", "DestroyProfileOnBrowserClose", "HttpsUpgrades", "LensOverlay"),
    *("HttpsFirstBalancedModeAutoEnable", "MediaRouter", "PaintHolding", "ThirdPartyStoragePartitioning"),
    *("AvoidCorsURLLoaderRestartOnRedirect", "TcpPortRandomizationWin", "OptimizationHints", "PreconnectToSearch"),
    *("NetworkTimeServiceQuerying", "AimEnabled"),
)
"""Features of the browser. The first two give each new window two hidden pages for its address field, which cost more
than the window itself."""
SWITCHES: Final = ("--disable-gpu", "--disable-quic", f"--disable-features={','.join(_OFF)}")

OpenWindow: TypeAlias = Callable[..., Page]

expect.set_options(timeout=PATIENCE)


@contextmanager
def running_browser() -> Iterator[Browser]:
    """A browser without a window on the screen; without a browser the test is skipped."""
    program = find_browser()
    if program is None:
        pytest.skip("there is no browser: install Chromium, or name one by LOWKIQ_TEST_BROWSER")
    # To be left as soon as it can be: while it runs, no other loop can in this thread.
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=SWITCHES)
        yield browser
        browser.close()


@contextmanager
def windows(browser: Browser, complaints: list[str]) -> Iterator[OpenWindow]:
    """Opens windows, with options of Playwright's contexts; what their consoles say is added to `complaints`."""

    def note(message: ConsoleMessage) -> None:
        if message.type in {"error", "warning"}:
            complaints.append(message.text)

    with ExitStack() as stack:

        def open_window(**options: Any) -> Page:
            context = browser.new_context(**{"locale": "en-GB", "timezone_id": "Europe/Vienna", **options})
            stack.callback(context.close)
            context.set_default_timeout(PATIENCE)
            page = context.new_page()
            page.on("console", note)
            page.on("pageerror", lambda error: complaints.append(str(error)))
            return page

        yield open_window


def try_wrong_password(page: Page, complaints: list[str]) -> None:
    """Fill in the form of a page that asks for a password: it stays, and says that the password is wrong."""
    expect(page).to_have_title("Sign in · lowkiq")
    page.get_by_label("Password").fill("wrong")
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_text("The password is wrong.")).to_be_visible()
    assert ["401" in complaint for complaint in complaints] == [True]
    complaints.clear()
