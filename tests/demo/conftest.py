"""The demo's table, without a run."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from local.demo.table import Table


@pytest.fixture
def table(tmp_path: Path) -> Iterator[Table]:
    """An empty table."""
    with closing(Table(tmp_path / "table.sqlite")) as opened:
        yield opened
