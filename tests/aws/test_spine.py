"""The spine on Lambda: how many calls stand between the function's handler and the user's."""

from collections.abc import Callable
from typing import Final

import pytest

from lowkiq_lambda import Lowkiq
from tests.aws.functions import DrainFunction
from tests.kit.apps import MakeApp
from tests.kit.spines import KINDS, Spine, perform
from tests.kit.workers import jobs_of

MOST: Final = 24
"""Calls from the function's handler on, the user's among them."""
HANDLER: Final = "logs.logged.<locals>.handler"
"""What Lambda calls."""


def check(drain: DrainFunction, app: Lowkiq, spine: Spine, event: dict[str, bool], **settings: object) -> None:
    """Invoke the function with one job in the app's first queue."""
    app.push_many(app.workers[0], jobs_of("a"))
    drain.install(app, **settings)

    assert 1 == drain(event)["counts"]["done"]

    spine.check(HANDLER, MOST)


@pytest.mark.parametrize("kind", KINDS)
def test_an_invocation_is_no_more_than_twenty_four_calls_above_the_handler(
    drain: DrainFunction, make_app: MakeApp, queue_name: str, kind: Callable[..., None]
) -> None:
    """Log, answer and flush are around a drain without a call of their own for each."""
    app, spine = make_app(), Spine()
    kind(app, queue_name, spine)

    check(drain, app, spine, {})


def test_a_tick_and_a_buffer_make_it_no_deeper(drain: DrainFunction, make_app: MakeApp, queue_name: str) -> None:
    """With housekeeping before the drain, a flush behind it."""
    app, spine = make_app(when_unavailable="buffer"), Spine()
    perform(app, queue_name, spine)

    check(drain, app, spine, {"tick": True}, idle="end")
