"""The spine: how many calls stand between whoever starts a drain and the handler that it runs."""

from collections.abc import Callable
from typing import Any, Final

import pytest

from lowkiq_lambda import Lowkiq, Rate
from tests.kit.spines import KINDS, Spine, perform
from tests.kit.workers import jobs_of

MOST: Final = 12
"""Calls from the user's own on, the handler's among them."""


@pytest.mark.parametrize("kind", KINDS)
def test_a_drain_is_no_more_than_twelve_calls_above_the_handler(
    app: Lowkiq, queue_name: str, kind: Callable[..., None]
) -> None:
    """Drain, visit, claim, batch: one level each, and few calls between them."""
    spine = Spine()
    kind(app, queue_name, spine)
    app.push_many(app.workers[0], jobs_of("a"))

    assert 1 == app.drain()["done"]

    spine.check("app.Lowkiq.drain", MOST)


@pytest.mark.parametrize("limits", [{"max_running": 1}, {"rate": Rate(100, 60.0)}])
def test_a_limited_queue_is_no_deeper(app: Lowkiq, queue_name: str, limits: dict[str, Any]) -> None:
    """A visit that needs a permit of its queue has it in the same call."""
    spine = Spine()
    perform(app, queue_name, spine, **limits)
    app.push_many(app.workers[0], jobs_of("a"))

    assert 1 == app.drain()["done"]

    spine.check("app.Lowkiq.drain", MOST)


@pytest.mark.parametrize("kind", KINDS)
def test_a_batch_beside_others_is_no_deeper(app: Lowkiq, queue_name: str, kind: Callable[..., None]) -> None:
    """In its slot: from the first call of the thread on."""
    spine = Spine()
    kind(app, queue_name, spine, concurrency=2)
    app.push_many(app.workers[0], jobs_of("a"))

    assert 1 == app.drain()["done"]

    spine.check("threading.Thread._bootstrap", MOST)
