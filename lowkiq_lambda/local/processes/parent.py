"""The parent as a program: signals go in and on to the children, the worst exit code comes out.

Were it killed, each child would hear that it is gone, and stop.
"""

import logging
from secrets import token_hex
from signal import SIGCHLD, SIGINT, SIGTERM, SIGTSTP, SIGTTIN
from signal import Signals as Signal
from threading import Thread
from time import monotonic
from typing import Final

from msgspec import structs

from lowkiq_lambda.app import Lowkiq
from lowkiq_lambda.base.address import is_embedded
from lowkiq_lambda.base.clock import SystemClock
from lowkiq_lambda.base.errors import LowkiqError
from lowkiq_lambda.local.process_runner import ONE_REQUEST
from lowkiq_lambda.local.processes.child_process import ChildProcess
from lowkiq_lambda.local.processes.memory import new_watch
from lowkiq_lambda.local.processes.messages import Order
from lowkiq_lambda.local.processes.supervisor import ProcessSupervisor
from lowkiq_lambda.local.serving import redeclare_empty_queues
from lowkiq_lambda.local.signals import Signals
from lowkiq_lambda.store.shard.dead_holders import release_dead

logger = logging.getLogger(__name__)

_STOP: Final = (SIGTERM, SIGINT)

LAST_WAIT: Final = 1.0
"""Seconds for which the parent's end waits for the release of leases; the others run out by themselves."""


def run_parent(app: Lowkiq, order: Order, max_memory: int | None) -> int:
    """Run the children of an order until they are told to stop; the exit code.

    Each has a number and a nonce prefix of its own. `max_memory`: megabytes (MiB) for each child. Raises ConfigError
    where their memory cannot be watched.
    """
    if is_embedded(app.config.redis_url):
        # Now no other process uses the server; the children will use it beside one another.
        redeclare_empty_queues(app)
    clock = SystemClock()
    watch = None if max_memory is None else new_watch(max_memory, clock)
    leases = DeadLeases(app)
    with Signals([*_STOP, SIGTSTP, SIGTTIN, SIGCHLD]) as signals:

        def start(number: int) -> ChildProcess:
            own_order = structs.replace(order, number=number, nonce_prefix=token_hex(8))
            child = ChildProcess(own_order, clock, signals.wake)
            logger.info("a child is started", extra={"child": number, "pid": child.pid})
            return child

        timeout = app.config.shutdown_timeout
        supervisor = ProcessSupervisor(order.processes, start, timeout, clock, watch, leases.release)
        told_at = _until_told_to_stop(supervisor, signals)
        while not supervisor.has_ended:
            signal = signals.next(supervisor.tend())
            if signal in _STOP and monotonic() >= told_at + ONE_REQUEST:
                logger.warning("told to stop again: what runs is given back")
                supervisor.hurry()
            _pass_on(supervisor, signal)
        leases.wait()
        logger.info("all children have stopped", extra={"code": supervisor.code})
        return supervisor.code


def _until_told_to_stop(supervisor: ProcessSupervisor, signals: Signals) -> float:
    """When it was told to stop, or stopped because a child cannot start; monotonic."""
    while True:
        pause = supervisor.tend()
        if supervisor.is_stopping:
            return monotonic()
        signal = signals.next(pause)
        if signal in _STOP:
            logger.info("told to stop", extra={"signal": signal.name, "timeout": supervisor.shutdown_timeout})
            supervisor.stop()
            return monotonic()
        _pass_on(supervisor, signal)


def _pass_on(supervisor: ProcessSupervisor, signal: Signal | None) -> None:
    if signal == SIGTSTP:
        supervisor.tell("quiet")
    elif signal == SIGTTIN:
        for child in supervisor.children:
            logger.info("state of a child", extra=child.fields())
        supervisor.tell("traces")


class DeadLeases:
    """Releases leases in threads of its own: while Redis is away, children are supervised all the same."""

    def __init__(self, app: Lowkiq) -> None:
        self._app = app
        self._threads: list[Thread] = []

    def release(self, child: ChildProcess) -> None:
        """Begin to release the shards of a child that has ended. Shards with another holder by now are left alone."""
        thread = Thread(target=self._release, args=(child,), name=f"lowkiq-leases-{child.number}", daemon=True)
        thread.start()
        self._threads = [*(one for one in self._threads if one.is_alive()), thread]

    def wait(self) -> None:
        """Wait until all releases have ended, up to a limit."""
        ends_at = monotonic() + LAST_WAIT
        for thread in self._threads:
            thread.join(max(0.0, ends_at - monotonic()))

    def _release(self, child: ChildProcess) -> None:
        app = self._app
        try:
            # Later it would be of no use: the leases have ended by themselves.
            freed = release_dead(
                app.core.backend, app.core.drains.drainer.shards(), child.nonce_prefix, app.config.lease_ttl
            )
        except LowkiqError as error:
            logger.warning("the leases that a child left end by themselves: %s", error)
            return
        if freed:
            names = [f"{shard.queue_name} {shard.number}" for shard in freed]
            logger.info("the leases that a child left are released", extra={"child": child.number, "shards": names})
