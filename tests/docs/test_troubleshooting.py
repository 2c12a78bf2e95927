"""The page of error texts has texts that the code says."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

import lowkiq_lambda.base.errors
from lowkiq_lambda.base.errors import LowkiqError

ROOT: Final = Path(__file__).parents[2]
PAGE: Final = (ROOT / "docs" / "troubleshooting.md").read_text()
HEADINGS: Final = re.findall(r"^### (.*)$", PAGE, re.MULTILINE)
HOLE: Final = re.compile(r"%(?:\.\d+)?[sdrf]")
"""Of a log line."""

pytestmark = pytest.mark.xdist_group("troubleshooting")  # the code is read once


def texts() -> Iterator[str]:
    """All texts in the code, with an ellipsis for what is put into them, and the default messages of errors."""
    for path in sorted((ROOT / "lowkiq_lambda").rglob("*.py")):
        nodes = list(ast.walk(ast.parse(path.read_text())))
        docstrings = {id(node.value) for node in nodes if isinstance(node, ast.Expr)}
        for node in nodes:
            if isinstance(node, ast.JoinedStr):
                yield "".join(str(part.value) if isinstance(part, ast.Constant) else "…" for part in node.values)
            elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docstrings:
                yield HOLE.sub("…", node.value)
    for error in vars(lowkiq_lambda.base.errors).values():
        if isinstance(error, type) and issubclass(error, LowkiqError):
            yield str(error())


@pytest.fixture(scope="module")
def said() -> list[str]:
    """Those of the code."""
    return list(texts())


def test_the_page_has_texts() -> None:
    """Each section of it is one text, and no text has two."""
    assert HEADINGS
    assert sorted(set(HEADINGS)) == sorted(HEADINGS)


@pytest.mark.parametrize("heading", HEADINGS)
def test_the_code_says_it(said: list[str], heading: str) -> None:
    """A text that changes in the code is changed on the page too, or who searches for it finds nothing."""
    assert (heading[0], heading[-1]) == ("`", "`")
    assert any(heading.strip("`") in text for text in said)
