"""The daemon: a fixed number of drain threads, a thread that listens for pushes, and a thread that supervises them.

It uses no signals and no terminal, so it runs in any process and from any thread; `process_runner.py` makes a program
of it.
"""

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from random import Random
from threading import Thread
from types import TracebackType
from typing import TYPE_CHECKING, Final, Self

from lowkiq_lambda.app import Lowkiq
from lowkiq_lambda.base.address import is_embedded
from lowkiq_lambda.base.clock import SystemClock
from lowkiq_lambda.base.errors import BackendError, BackendUnavailable, ConfigError
from lowkiq_lambda.engine.heartbeat import Heartbeat
from lowkiq_lambda.local.lifecycle import Lifecycle, call_hook, call_hooks
from lowkiq_lambda.local.listener import PROBE, Listener
from lowkiq_lambda.local.outage import CHECK_URL, Outage
from lowkiq_lambda.local.splitters import Dealer, NodeDealer
from lowkiq_lambda.local.thread_supervisor import Runnable, ThreadSupervisor
from lowkiq_lambda.local.threads import DrainThread
from lowkiq_lambda.settings.config import Config
from lowkiq_lambda.store.server.health import check_server
from lowkiq_lambda.store.shard.notifications import Notifications
from lowkiq_lambda.views.processes import ProcessState

if TYPE_CHECKING:
    from lowkiq_lambda.duties.runner import DutyRunner
    from lowkiq_lambda.engine.board import ShardBoard

logger = logging.getLogger(__name__)

ABANDONED_LEASE: Final = 0.8
"""Seconds for which the shards of abandoned jobs stay closed: the process must be gone by then."""
WOULD_WAIT: Final = (
    "Leaving `with Daemon(app)` on the thread of its handlers' loop would wait for itself: call start, and at the end "
    "stop and await asyncio.to_thread(daemon.join, app.config.shutdown_timeout)."
)
ABANDON_TIMEOUT: Final = 0.25
"""Seconds that giving jobs back may take; jobs that are not by then wait for the lease to run out."""


class Daemon:
    """Drains an app's queues in this process, from `start` until `stop`, once; a context manager of the two."""

    def __init__(self, app: Lowkiq, dealer: Dealer | None = None, nonce_prefix: str = "") -> None:
        """`dealer` and `nonce_prefix`: of a process that is one of several.

        By default the settings decide which shards it drains, and its leases have no prefix.
        """
        self._app = app
        self._dealer: Dealer = dealer or NodeDealer()
        self._nonce_prefix = nonce_prefix
        self._clock = SystemClock()
        self._boards: Sequence[ShardBoard] = ()
        self._has_started = False
        self._heartbeat: Heartbeat | None = None
        self.obey: Callable[[str], object] = self._obey
        """Called with "quiet" or "stop" after an order by way of Redis; a program ends in its own way."""
        self._follows_tasks = False
        self._follows_moves = False
        self._watches = False
        self._follows_auto = False
        self._rng = Random()  # noqa: S311 - spreads attempts in time, protects nothing

    def start(self) -> None:
        """Begin to drain; returns before the hooks have run and the first job has begun.

        Raises ConfigError if the settings or the app cannot work, QueueMismatch if a queue is declared otherwise,
        BackendError if Redis refuses the connection or no node of a cluster is reachable. In the last case the call
        may be repeated. The daemon itself waits for an unreachable server.
        """
        config, drainer = self._app.config, self._app.core.drains.drainer
        drainer.nonce_prefix = self._nonce_prefix
        shards, layout = drainer.shards(), drainer.layout
        if not shards:
            raise ConfigError("The app declares no worker: import the modules that declare them.")
        self._boards = self._dealer.boards(config, shards, self._clock, self._rng)
        for board in self._boards:
            board.weigh(drainer.weights)
        last_words = partial(call_hook, "last_words", config.last_words)
        outage = Outage(self._clock, last_words)
        if is_embedded(config.redis_url):
            from lowkiq_lambda.local.serving import redeclare_empty_queues  # noqa: PLC0415 - only there

            redeclare_empty_queues(self._app)
        # Errors that retrying cannot fix should end the start, before any job has begun.
        try:
            drainer.probe(shards)
        except BackendUnavailable as error:
            outage.failed(PROBE, error, CHECK_URL)
        if drainer.layout != layout:
            self._deal_anew()
        if self._dealer.is_first:
            self._warn_of_shards(config)
        self._lifecycle = Lifecycle(config, drainer.begin, self._app.flush)
        self._lifecycle.alive = self._heartbeats()
        supervisor = ThreadSupervisor(
            [*self._drains(config, outage), *self._listeners(config, outage), *self._duties(outage)],
            pause=config.poll_interval,
            clock=self._clock,
            notify=self._lifecycle.notify,
            last_words=last_words,
        )
        supervisor.find_more = partial(self._late_duties, outage)
        Thread(target=self._lifecycle.run, args=(supervisor,), name="lowkiq-lifecycle", daemon=True).start()
        self._has_started = True

    def quiet(self) -> None:
        """Start no new jobs; running jobs finish, and the process stays. Harmless to repeat."""
        for board in self._boards:
            board.close()
        self._lifecycle.quiet()
        self._tell_soon()

    def stop(self) -> None:
        """As `quiet`, and end when the running jobs have finished; `join` waits for that."""
        for board in self._boards:
            board.close()
        self._lifecycle.stop()
        self._tell_soon()

    def join(self, timeout: float | None = None) -> bool:
        """Wait until the daemon has ended; whether it has. It ends after `stop`, or by an error of its own."""
        return self._lifecycle.finished.wait(timeout)

    @property
    def state(self) -> ProcessState:
        """The state of the daemon."""
        return self._lifecycle.state if self._has_started else "starting"

    @property
    def broke_off(self) -> bool:
        """Whether the daemon ended by an error of its own."""
        return self._lifecycle.broke_off

    def running_jobs(self) -> list[dict[str, object]]:
        """The jobs of the running handlers, each as fields of a log line: queue, shard, count, ids."""
        return self._app.core.drains.drainer.running_jobs()

    def give_up_pushes(self) -> None:
        """Report the jobs that wait in this process for Redis as lost, because the process ends at once."""
        if self._app.core.has_pushed:
            self._app.core.pushes.give_up()

    def abandon(self) -> None:
        """Give running jobs back unfinished. The process must exit at once: other processes start them very soon."""
        # In its own thread: Redis may hang, and the process must not wait for it then.
        giving_back = Thread(target=self._app.core.drains.drainer.abandon_all, args=(ABANDONED_LEASE,), daemon=True)
        giving_back.start()
        giving_back.join(ABANDON_TIMEOUT)

    def __enter__(self) -> Self:
        self._refuse_to_wait()
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop, and wait as long as `shutdown_timeout` says; a handler that takes longer keeps its thread.

        Raises RuntimeError, and does not wait, on the thread of the loop on which coroutine handlers run.
        """
        self.stop()
        self._refuse_to_wait()
        if not self.join(self._app.config.shutdown_timeout):
            logger.warning("the daemon's handlers still run")

    @contextmanager
    def _heartbeats(self) -> Iterator[None]:
        config = self._app.config
        heartbeat = Heartbeat(
            self._app.core.drains.drainer, "daemon", config.threads_per_node, self.obey, lambda: self.state
        )
        heartbeat.on_heartbeat = partial(call_hooks, "on_heartbeat", config.on_heartbeat)
        self._heartbeat = heartbeat
        heartbeat.begin()
        try:
            yield
        finally:
            heartbeat.end()
            if heartbeat.is_heard:
                heartbeat.sender.end()

    def _obey(self, order: str) -> None:
        (self.stop if order == "stop" else self.quiet)()

    def _tell_soon(self) -> None:
        if self._heartbeat is not None:
            self._heartbeat.send_soon()

    def _refuse_to_wait(self) -> None:
        if self._app.core.drains.drainer.is_on_handlers_loop():
            raise RuntimeError(WOULD_WAIT)

    def _warn_of_shards(self, config: Config) -> None:
        threads = config.threads_per_node * config.number_of_nodes * self._dealer.processes
        for name, queue in self._app.core.queues.items():
            count = queue.shards.layout.after
            if count > threads:
                logger.warning(
                    "%s has more shards than there are threads: those above bring nothing but overhead",
                    name,
                    extra={"shards": count, "threads": threads},
                )

    def _deal_anew(self) -> None:
        """Give the boards the shards that there are now."""
        dealt = self._dealer.boards(self._app.config, self._app.core.drains.drainer.shards(), self._clock, self._rng)
        for board, like in dict(zip(self._boards, dealt, strict=True)).items():
            board.deal_as(like)

    def _drains(self, config: Config, outage: Outage) -> Iterator[tuple[str, Runnable]]:
        for number, board in enumerate(self._boards):
            scheduler = config.build_scheduler() if config.build_scheduler else None
            drain = DrainThread(self._app.core.drains.drainer, board, scheduler, outage, config, self._clock)
            yield f"drain-{number}", drain

    def _listeners(self, config: Config, outage: Outage) -> Iterator[tuple[str, Runnable]]:
        boards = list(dict.fromkeys(self._boards))
        shards = [shard for board in boards for shard in board.shards]
        if not shards:
            logger.warning("no shard is left for this node: it has nothing to do")
            return
        yield (
            "listener",
            Listener(
                drainer=self._app.core.drains.drainer,
                boards=boards,
                subscription=Notifications(
                    self._app.core.connections.url,
                    shards,
                    timeout=config.redis_timeout,
                    credentials=config.credentials,
                    client=config.redis,
                ),
                outage=outage,
                poll_interval=config.poll_interval,
                clock=self._clock,
                rng=self._rng,
                stopping=self._lifecycle.is_quiet,
                deal_anew=self._deal_anew,
                check=partial(_server_warnings, self._app) if self._dealer.is_first else tuple,
            ),
        )

    def _duties(self, outage: Outage) -> Iterator[tuple[str, Runnable]]:
        if self._app.core.housekeeping.duties or self._app.core.housekeeping.fires_schedules:
            from lowkiq_lambda.duties.runner import runners_of  # noqa: PLC0415 - only where an app has duties
            from lowkiq_lambda.local.threads import DutyThread  # noqa: PLC0415 - as above

            for runner in runners_of(self._app.core, lambda: self._app.schedules, self._clock):
                yield runner.name, DutyThread(runner, outage, self._rng, stopping=self._lifecycle.is_quiet)
        if self._app.core.housekeeping.verifies:
            from lowkiq_lambda.local.threads import DutyThread  # noqa: PLC0415 - as above
            from lowkiq_lambda.operate.verify.duty import verify_runner  # noqa: PLC0415 - only if it is asked for

            verifier = verify_runner(self._app.core, self._clock)
            yield verifier.name, DutyThread(verifier, outage, self._rng, stopping=self._lifecycle.is_quiet)

        if self._app.core.housekeeping.alerts:
            from lowkiq_lambda.local.threads import DutyThread  # noqa: PLC0415 - as above
            from lowkiq_lambda.operate.alerts.duty import alert_runner  # noqa: PLC0415 - only if it is asked for

            alerts = alert_runner(self._app.operate, self._clock)
            yield alerts.name, DutyThread(alerts, outage, self._rng, stopping=self._lifecycle.is_quiet)

    def _late_duties(self, outage: Outage) -> Iterator[tuple[str, Runnable]]:
        """Duties that are needed once a task takes pushes, or a queue moves or is late: no declaration shows that."""
        for runner in self._late_runners():
            from lowkiq_lambda.local.threads import DutyThread  # noqa: PLC0415 - only where there are such

            yield runner.name, DutyThread(runner, outage, self._rng, stopping=self._lifecycle.is_quiet)

    def _late_runners(self) -> "Iterator[DutyRunner]":
        if self._app.core.housekeeping.follows_tasks and not self._follows_tasks:
            self._follows_tasks = True
            from lowkiq_lambda.tasks.duty import task_runner  # noqa: PLC0415 - only where there are tasks

            yield task_runner(self._app.core, self._clock)
        if self._app.core.housekeeping.follows_moves and not self._follows_moves:
            self._follows_moves = True
            from lowkiq_lambda.reshard.duty import move_runner  # noqa: PLC0415 - only where a queue has moved

            yield move_runner(self._app.core, self._clock)
        if self._app.core.housekeeping.watches and not self._watches:
            self._watches = True
            from lowkiq_lambda.operate.lateness.duty import watch_runner  # noqa: PLC0415 - only where a queue is late

            yield watch_runner(self._app.core, self._clock)
        if self._app.core.housekeeping.follows_auto and not self._follows_auto:
            self._follows_auto = True
            from lowkiq_lambda.operate.auto.duty import auto_runner  # noqa: PLC0415 - only where a queue is "auto"

            yield auto_runner(self._app.core, self._clock)


def _server_warnings(app: Lowkiq) -> list[str]:
    with suppress(BackendError):
        return check_server(app.core.backend.client)
    return []
