"""The page of the doctor names what it looks at."""

import re

from lowkiq_lambda.operate.doctor.promises import PROMISES
from tests.doctor.looks import CHECKS, ROOT


def test_each_check_has_its_row() -> None:
    """A line of the doctor is found on its page by the name of its check."""
    table = (ROOT / "docs" / "doctor.md").read_text().partition("| check | is broken")[2].partition("\n\n")[0]
    rows = {name for row in table.splitlines()[2:] for name in row.split(" | ")[0].strip("| ").split(", ")}

    assert len(CHECKS) > 20
    assert set() == CHECKS - rows


def test_the_promises_are_those_of_the_docs() -> None:
    """Their numbers and names are the same for the doctor and for readers."""
    rows = re.findall(r"^\| P(\d+) \| \*\*(.+?)\*\* \|", (ROOT / "docs" / "promises.md").read_text(), re.MULTILINE)

    assert {int(number): name for number, name in rows} == PROMISES
