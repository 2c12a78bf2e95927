"""Holders that die, and the end of their leases."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeAlias

import pytest

from lowkiq_lambda import Lowkiq, Worker
from lowkiq_lambda.engine.lease import LeaseRenewer
from lowkiq_lambda.engine.survivors import Survivors
from lowkiq_lambda.store.shard.keys import Keyed
from lowkiq_lambda.store.shard.scripts import Argument, Script
from lowkiq_lambda.testing import ManualClock

Dies: TypeAlias = Callable[[str], bool]
"""Whether the process dies before the call of the script of this name."""


def _never(_call: str) -> bool:
    return False


class Died(BaseException):
    """The process is gone."""


class Mortal:
    """Makes the drains of an app die: then nothing of them reaches the server any more."""

    def __init__(self, app: Lowkiq) -> None:
        self._app = app
        self._backend = app.core.drains.drainer._backend
        self._run, self._call = self._backend.run, self._backend.call
        self._dead = False
        self.dies_before: Dies = _never
        """Asked at each call of a script; if the answer is yes, that call does not reach the server."""
        self._backend.run = self._run_if_alive  # type: ignore[method-assign]  # that is the point
        self._backend.call = self._call_if_alive  # type: ignore[method-assign]  # as above

    def die(self, *_arguments: object) -> None:
        """From now on."""
        self._dead = True

    def die_before(self, call: str) -> None:
        """At the next call of that script, or, of a permit of a limited queue, at that one."""
        self.dies_before = lambda name: name == call

    def drain(self, seconds: float | None = None) -> dict[str, int] | None:
        """The counts of the drain, or None if it died; the lease and the jobs of a dead drain stay."""
        try:
            return self._app.drain(seconds)
        except Died:
            # A process that is gone does not say later that it lives.
            self._app.core.drains.drainer._survivors = Survivors()
            return None
        finally:
            self._dead, self.dies_before = False, _never

    def _run_if_alive(self, name: str, *args: Any, **options: Any) -> Any:
        self._stay_alive(name)
        return self._run(name, *args, **options)

    def _call_if_alive(self, code: Script, target: Keyed, args: Sequence[Argument], *more: Any, **options: Any) -> Any:
        # Of a place: all of them are one script.
        self._stay_alive(str(args[0]) if code.name == "admit" else code.name)
        return self._call(code, target, args, *more, **options)

    def _stay_alive(self, call: str) -> None:
        self._dead = self._dead or self.dies_before(call)
        if self._dead:
            raise Died


def outlive(app: Lowkiq, clock: ManualClock, *workers: type[Worker]) -> None:
    """Let the leases of dead holders end, on the server too."""
    _let_pass(app, clock, app.config.lease_ttl + 1, workers)


def outlive_gone(app: Lowkiq, clock: ManualClock, *workers: type[Worker]) -> None:
    """Let the leases end, on the server too, of those alone that said that they are gone: others have half left."""
    _let_pass(app, clock, app.config.lease_ttl / 2, workers)


def _let_pass(app: Lowkiq, clock: ManualClock, seconds: float, workers: Iterable[type[Worker]]) -> None:
    clock.advance(seconds)
    for worker in workers:
        for shard in app.core.queues.agreed(worker).shards:
            app.core.backend.client.delete(shard.key("lease"))


def stop_renewing(app: Lowkiq, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the thread that renews leases stand still, as it does in a process that is frozen."""
    still = LeaseRenewer()
    monkeypatch.setattr(still, "renew_due", lambda: 3_600.0)
    monkeypatch.setattr(app.core.drains.drainer._renewers, "of", lambda _shard: still)
