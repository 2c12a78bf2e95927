"""docs/architecture.md says where each thing is decided: the places exist, with the functions that it names."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

import lowkiq_lambda

PACKAGE: Final = Path(lowkiq_lambda.__file__).parent
PAGE: Final = PACKAGE.parent / "docs" / "architecture.md"
_NAMES: Final = re.compile(r"`([^`]+)`")


def decisions() -> Iterator[tuple[str, str]]:
    """Each decision, and what the page says of its place."""
    section = PAGE.read_text().partition("## Where it is decided")[2].partition("\n## ")[0]
    for line in section.splitlines():
        if line.startswith("| ") and not line.startswith(("| decision", "| ---")):
            _, decision, place, _ = line.split("|")
            yield decision.strip(), place


@pytest.mark.parametrize(("decision", "place"), [pytest.param(*each, id=each[0]) for each in decisions()])
def test_a_decision_has_its_place(decision: str, place: str) -> None:
    """Each file exists, and each function is defined in the file that comes before it."""
    path = None
    for name in _NAMES.findall(place):
        if "/" in name:
            path = PACKAGE / name
            assert path.is_file(), f"{decision}: {name}"
        else:
            assert path
            assert re.search(rf"(def|function) ([\w.]+\.)?{name}\(", path.read_text()), f"{decision}: {name}"
    assert path, f"{decision}: no file"
