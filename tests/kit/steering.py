"""Steps that people take on the dashboard's pages."""

from typing import Final

from playwright.sync_api import Locator, Page, expect

_MOST_STEPS = 100
_SEND: Final = """([path, method, fields]) => {
    const form = document.createElement("form");
    form.method = method;
    form.action = path;
    const proof = method === "get" ? [] : [["csrf", document.querySelector("input[name=csrf]").value]];
    for (const [name, value] of [...fields, ...proof]) {
        const input = document.createElement("input");
        [input.type, input.name, input.value] = ["hidden", name, value];
        form.append(input);
    }
    document.body.append(form);
    form.submit();
}"""


def tab_to(page: Page, target: Locator, *, backwards: bool = False) -> None:
    """Press Tab until the target has the focus, and see that it shows that."""
    for _ in range(_MOST_STEPS):
        page.keyboard.press("Shift+Tab" if backwards else "Tab")
        if target.evaluate("element => element === document.activeElement"):
            break
    expect(target).to_be_focused()
    assert target.evaluate("element => getComputedStyle(element).outlineStyle") != "none"


def send(page: Page, path: str, *fields: tuple[str, str], method: str = "post") -> None:
    """Send a form as one of the page's own would be sent, whether the page shows such a form or not."""
    with page.expect_navigation():
        page.evaluate(_SEND, [path, method, fields])


def ask(page: Page, name: str) -> None:
    """Begin an action, and wait for its question: a route set before that misses requests of the page that comes."""
    page.get_by_role("button", name=name).click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("?")


def confirm(page: Page, name: str) -> None:
    """Answer the question of an action with yes, and why if it has to be said."""
    expect(page.get_by_role("heading", level=1)).to_contain_text("?")
    reason = page.get_by_label("Reason, for the activity log", exact=True)
    if reason.count():
        reason.fill("a test")
    page.locator("main").get_by_role("button", name=name).click()


def expect_done(page: Page, number: str) -> None:
    """See that an action has come to its end, and how many ids it changed."""
    expect(page.get_by_role("status").filter(has_text="changed")).to_contain_text(f"Done. {number} changed.")
