"""The two other sides of the example, and its app on a server of pytest's."""

from collections.abc import Iterator

import pytest

from examples.erp_sync.erp import Erp
from examples.erp_sync.http import served
from examples.erp_sync.jobs import app as example
from examples.erp_sync.knobs import Knobs
from examples.erp_sync.shop import Shop
from lowkiq_lambda import Lowkiq

POISON = "1000"


@pytest.fixture
def lowkiq_app() -> Lowkiq:
    """What the fixture `lowkiq` performs here."""
    return example


@pytest.fixture
def shop(monkeypatch: pytest.MonkeyPatch) -> Iterator[Shop]:
    """A shop of ten products, one of them without a picture; nothing changes by itself."""
    made = Shop(Knobs(products=10))
    with served(made.app) as url:
        monkeypatch.setenv("SHOP_URL", url)
        yield made


@pytest.fixture
def erp(monkeypatch: pytest.MonkeyPatch) -> Iterator[Erp]:
    """An ERP without failures."""
    made = Erp(rate=1_000, failures=0.0, poison={POISON}, seed=1)
    with served(made.app) as url:
        monkeypatch.setenv("ERP_URL", url)
        yield made
