"""The public names, as the page of compatibility lists them."""

import re
from pathlib import Path
from typing import Final

DOCS: Final = Path(__file__).parents[2] / "docs"
PRIVATE: Final = {"core", "duty_looks", "inspector", "reader", "runner"}
"""Names without an underscore that code of the library needs, and that are private by contract."""


def listed() -> dict[str, list[str]]:
    """The names of the page, by the module or the object that has them."""
    section = (DOCS / "compatibility.md").read_text().partition("## Public names")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| (.+?) \| (.+) \|$", section, re.MULTILINE)[2:]
    return {of: re.findall(r"`(\w+)`", names) for of, names in rows}


def members(of: object) -> list[str]:
    """The names of an object that have no underscore, but for those that are private by contract."""
    return sorted(name for name in dir(of) if not name.startswith("_") and name not in PRIVATE)
