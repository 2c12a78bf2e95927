"""Callables around a call."""

from collections.abc import Callable

import pytest

from lowkiq_lambda.settings.protocols import ServerMiddleware, compose


def noting(name: str, notes: list[str]) -> ServerMiddleware:
    """A middleware that notes when it begins and ends."""

    def middleware(worker: str, batch: str, call_next: Callable[[], str]) -> str:
        notes.append(f"{name} before {worker} {batch}")
        result = call_next()
        notes.append(f"{name} after")
        return result

    return middleware


def test_first_middleware_is_outermost() -> None:
    """L-52: middlewares nest in their order, around the inner callable, whose result comes back."""
    notes: list[str] = []

    def inner(worker: str, batch: str) -> str:
        notes.append(f"inner {worker} {batch}")
        return "result"

    chain = compose([noting("a", notes), noting("b", notes)], inner)

    assert chain("w", "j") == "result"
    assert notes == ["a before w j", "b before w j", "inner w j", "b after", "a after"]


def test_without_middlewares_nothing_is_wrapped() -> None:
    """An empty list costs nothing: the inner callable itself comes back."""

    def inner(worker: str, batch: str) -> str:
        return worker + batch

    assert compose([], inner) is inner


def test_middleware_may_stop_the_chain() -> None:
    """A middleware that does not call on keeps everything inside from running."""
    ran: list[str] = []
    chain = compose([lambda _worker, _batch, _call_next: None], lambda worker, _batch: ran.append(worker))

    chain("w", "j")

    assert ran == []


def test_middleware_sees_and_may_swallow_errors() -> None:
    """L-52: a middleware can catch what the inner callable raises, let it pass or swallow it."""

    def broken(_worker: str, _batch: str) -> str:
        raise LookupError

    def swallowing(_worker: str, _batch: str, call_next: Callable[[], str]) -> str:
        with pytest.raises(LookupError):
            call_next()
        return "swallowed"

    assert compose([swallowing, noting("passing", [])], broken)("w", "j") == "swallowed"


def test_call_next_may_be_called_again() -> None:
    """Calling on twice runs the inside twice: the chain keeps no state."""
    ran: list[str] = []

    def twice(_worker: str, _batch: str, call_next: Callable[[], None]) -> None:
        call_next()
        call_next()

    compose([twice], lambda worker, _batch: ran.append(worker))("w", "j")

    assert ran == ["w", "w"]


def test_a_middleware_may_hand_on_another_batch() -> None:
    """What is given to call_next takes the place of what the middleware was given."""

    def doubled(worker: str, batch: int, call_next: Callable[..., str]) -> str:
        return call_next(worker, batch * 2)

    assert "w42" == compose([doubled], lambda worker, batch: f"{worker}{batch}")("w", 21)
