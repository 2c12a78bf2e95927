"""The page of compatibility lists exactly what is public."""

import re
from importlib import import_module
from pathlib import Path

from lowkiq_lambda import Lowkiq
from lowkiq_lambda.operate.operations import Operations
from lowkiq_lambda.operate.queue_operations import QueueOperations

PAGE = Path(__file__).parents[2] / "docs" / "compatibility.md"
PRIVATE = {"core", "duty_looks", "inspector", "reader", "runner"}
"""Names without an underscore that code of the library needs, and that are private by contract."""


def listed() -> dict[str, list[str]]:
    """The names of the page, by the module or the object that has them."""
    section = PAGE.read_text().partition("## Public names")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| (.+?) \| (.+) \|$", section, re.MULTILINE)[2:]
    return {of: re.findall(r"`(\w+)`", names) for of, names in rows}


def members(of: object) -> list[str]:
    """The names of an object that have no underscore, but for those that are private by contract."""
    return sorted(name for name in dir(of) if not name.startswith("_") and name not in PRIVATE)


def test_the_page_lists_exactly_what_is_public() -> None:
    """A name that comes, goes, or is renamed has to change the page, and so is seen by its reader."""
    objects = {"an app, `Lowkiq`": Lowkiq(), "`app.operate`": Operations, "`app.operate(worker)`": QueueOperations}
    found = listed()
    modules = {of: sorted(import_module(of.strip("`")).__all__) for of in found if of.startswith("`lowkiq_lambda")}

    assert 7 == len(modules)
    assert modules | {of: members(each) for of, each in objects.items()} == found
