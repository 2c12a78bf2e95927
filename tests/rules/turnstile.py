"""Callers that take turns: each stops before every call that it sends to the server, and goes on when it is told to."""

from collections.abc import Callable
from contextlib import suppress
from threading import Event, Thread
from typing import Any

from lowkiq_lambda import QueueMismatch
from lowkiq_lambda.store.shard.backend import Backend

_TIMEOUT = 30.0


class CallerKilled(BaseException):
    """The process of a caller is gone."""


class Caller:
    """Does something in a thread of its own, call by call of the server; with `twice` each call reaches it twice."""

    def __init__(self, backend: Backend, act: Callable[[], object], *, twice: bool = False) -> None:
        self._backend = backend
        self._act = act
        self._twice = twice
        self._may_go, self._stands = Event(), Event()
        self._is_killed = False
        self._crash: Exception | None = None
        self.is_over = False
        self.refusal: QueueMismatch | None = None
        """Why it was not done."""
        Thread(target=self._run, daemon=True).start()
        self._await_stand()

    def step(self, times: int = 1) -> None:
        """So many calls more, as far as there are any."""
        for _ in range(times):
            if not self.is_over:
                self._stands.clear()
                self._may_go.set()
                self._await_stand()

    def finish(self) -> None:
        """All that is left."""
        while not self.is_over:
            self.step()

    def kill(self) -> None:
        """None of its calls reaches the server any more."""
        self._is_killed = True
        self.finish()

    def _await_stand(self) -> None:
        assert self._stands.wait(_TIMEOUT), "a caller does not come to its next call"
        if self._crash is not None:
            raise self._crash

    def _run(self) -> None:
        call = self._backend.retrying
        self._backend.retrying = self._in_turn(call)  # type: ignore[method-assign]  # that is the point
        try:
            with suppress(CallerKilled):
                self._act()
        except QueueMismatch as error:
            self.refusal = error
        except Exception as error:  # noqa: BLE001 - told to the test, in its own thread
            self._crash = error
        finally:
            self._backend.retrying = call  # type: ignore[method-assign]  # as above
            self.is_over = True
            self._stands.set()

    def _in_turn(self, send: Callable[..., Any]) -> Callable[..., Any]:
        def retrying(retry_for: float, call: Callable[[], Any]) -> Any:
            self._stands.set()
            if not self._may_go.wait(_TIMEOUT):
                raise TimeoutError("nobody lets the caller go on")
            self._may_go.clear()
            if self._is_killed:
                raise CallerKilled
            if self._twice:
                send(retry_for, call)
            return send(retry_for, call)

        return retrying
