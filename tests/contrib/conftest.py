"""Shops on a file of SQLite, and on PostgreSQL where the machine has one."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from lowkiq_lambda import Lowkiq
from lowkiq_lambda.testing import ManualClock
from tests.contrib.django_fixtures import django_site, site
from tests.contrib.shop import OrderShop, engine_for, opened

__all__ = ["django_site", "site"]


@pytest.fixture
def sqlite_url(tmp_path: Path) -> str:
    """A database in a file."""
    return f"sqlite:///{tmp_path / 'shop.db'}"


@pytest.fixture
def shop(app: Lowkiq, sqlite_url: str, queue_name: str, clock: ManualClock) -> Iterator[OrderShop]:
    """A shop with a worker of one shard, whose time is the clock's."""
    with opened(OrderShop(app, engine_for(sqlite_url), queue_name, clock)) as made:
        yield made
