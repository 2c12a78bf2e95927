"""The page of the doctor names what it looks at."""

import re
from pathlib import Path
from typing import Final, get_args

from lowkiq_lambda.operate.doctor.findings import Mark
from lowkiq_lambda.operate.doctor.promises import PROMISES

ROOT: Final = Path(__file__).parents[2]
_CHECK: Final = re.compile(r'(?:_found\(\s*(?:node,\s*)?|check=|_unless_refused\("\w+", )"([a-z ]+)"')


def test_each_check_has_its_row() -> None:
    """A line of the doctor is found on its page by the name of its check."""
    sources = [*(ROOT / "lowkiq_lambda/operate/doctor").glob("*.py"), ROOT / "lowkiq_lambda/cli/doctor.py"]
    checks = {name for path in sources for name in _CHECK.findall(path.read_text())} - {*get_args(Mark)}
    table = (ROOT / "docs" / "doctor.md").read_text().partition("| check | is broken")[2].partition("\n\n")[0]
    rows = {name for row in table.splitlines()[2:] for name in row.split(" | ")[0].strip("| ").split(", ")}

    assert len(checks) > 20
    assert set() == checks - rows


def test_the_promises_are_those_of_the_docs() -> None:
    """Their numbers and names are the same for the doctor and for readers."""
    rows = re.findall(r"^\| P(\d+) \| \*\*(.+?)\*\* \|", (ROOT / "docs" / "promises.md").read_text(), re.MULTILINE)

    assert {int(number): name for number, name in rows} == PROMISES
