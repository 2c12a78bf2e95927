"""What a page does to people who see, hear or steer otherwise than by screen and mouse."""

from functools import cache
from pathlib import Path
from typing import Final

from playwright.sync_api import Page

_AXE: Final = Path(__file__).parent / "axe-core" / "axe-4.14.1.min.js"
_RUN: Final = """async ([only, without]) => {
    const tags = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"];
    const runOnly = only.length ? { type: "rule", values: only } : { type: "tag", values: tags };
    const rules = Object.fromEntries(without.map(name => [name, { enabled: false }]));
    const { violations } = await axe.run({ runOnly, rules, resultTypes: ["violations"], preload: false });
    return violations.flatMap(({ id, nodes }) => nodes.map(({ html, any, all, none }) =>
        `${id}: ${html} ${[...any, ...all, ...none].map(({ message }) => message).join(" ")}`));
}"""
_OF_COLOUR: Final = ["color-contrast", "link-in-text-block"]
_OVERHANG: Final = "document.documentElement.scrollWidth - document.documentElement.clientWidth"

_CUT: Final = """() => [...document.querySelectorAll("select")].filter(select => {
    const shown = select.offsetWidth;
    select.style.width = "max-content";
    const whole = select.offsetWidth;
    select.style.width = "";
    return shown < whole;
}).map(select => `the words of #${select.id} are cut off`)"""

_BROKEN: Final = r"""() => [...document.querySelectorAll("button, .button")].flatMap(button =>
    [...button.childNodes].filter(node => node.nodeType === Node.TEXT_NODE).flatMap(node =>
        [...node.data.matchAll(/\S+/g)].filter(({ 0: word, index }) => {
            const range = document.createRange();
            range.setStart(node, index);
            range.setEnd(node, index + word.length);
            return new Set([...range.getClientRects()].map(({ top }) => top)).size > 1;
        }).map(([word]) => `${word} on a button is broken into two lines`)))"""


def violations(page: Page, *, of_colour: bool = True, of_all_else: bool = True) -> list[str]:
    """Where the page as it is shown now violates WCAG 2.2, level A or AA, or good practice, as programs can tell."""
    # By the debugger, for which the page's own policy does not count.
    if not page.evaluate("'axe' in window"):
        page.evaluate(_axe())
    found: list[str] = page.evaluate(_RUN, [[] if of_all_else else _OF_COLOUR, [] if of_colour else _OF_COLOUR])
    return found


def overhang(page: Page) -> int:
    """By how many pixels the page is wider than its window."""
    pixels: int = page.evaluate(_OVERHANG)
    return pixels


def cut_words(page: Page) -> list[str]:
    """Which fields are too narrow for one of the words to choose from."""
    found: list[str] = page.evaluate(_CUT)
    return found


def broken_words(page: Page) -> list[str]:
    """Which words of buttons do not stand in one line."""
    found: list[str] = page.evaluate(_BROKEN)
    return found


@cache
def _axe() -> str:
    return _AXE.read_text()
