"""The program of a child: the daemon of its app, linked to the parent. It drains its own shards, then others."""

import logging
import os
import select
import signal
import socket
import sys
import traceback
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from random import Random
from signal import SIGINT, SIGTERM, SIGTSTP, SIGTTIN
from threading import Lock, Thread
from time import monotonic
from types import FrameType
from typing import Any, Final, Self

import msgspec
from msgspec.structs import replace

from lowkiq_lambda.app import Lowkiq
from lowkiq_lambda.base.address import is_embedded
from lowkiq_lambda.base.clock import Clock
from lowkiq_lambda.base.errors import AppNotFound, ConfigError, DeclarationError, LowkiqError
from lowkiq_lambda.engine.board import ShardBoard
from lowkiq_lambda.engine.budget import VisitResult
from lowkiq_lambda.engine.heartbeat import resident_memory
from lowkiq_lambda.local.daemon import Daemon
from lowkiq_lambda.local.logs import set_up_logs
from lowkiq_lambda.local.process_runner import ProcessRunner
from lowkiq_lambda.local.processes.messages import FAILED, MISUSED, WORDS, Order, Status, Word
from lowkiq_lambda.local.signals import Signals
from lowkiq_lambda.local.splitters import ByNodeSplitter, hands, new_board, shards_of_node
from lowkiq_lambda.local.traces import TRACE_FILE
from lowkiq_lambda.providers.embedded.shared import attach
from lowkiq_lambda.settings.config import Config
from lowkiq_lambda.settings.loading import load_app
from lowkiq_lambda.store.shard.keys import ShardRef
from lowkiq_lambda.store.shard.state import ProbeResult

logger = logging.getLogger(__name__)

FROM_TERMINAL: Final = (SIGINT, SIGTSTP, SIGTTIN)
"""What reaches the whole group of processes: a child is begun with these blocked."""
_SIGNALS: Final = {"stop": SIGTERM, "quiet": SIGTSTP, "traces": SIGTTIN}

STATUS_INTERVAL: Final = 1.0
_BOOT_INTERVAL: Final = 0.02
"""Seconds between two looks whether the daemon runs by now: the parent is to hear of that at once."""
_MOST: Final = 65_536

HELP_AFTER: Final = 0.2
"""Seconds that a job of another process's shard is due before this one helps."""


def main(words: list[str]) -> int:
    """Run the child whose connection to the parent has the descriptor that is the last word; the exit code."""
    # While the app is imported, it is the parent who says what a Ctrl-C means.
    for number in FROM_TERMINAL:
        signal.signal(number, _leave_to_parent)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, FROM_TERMINAL)
    link = ParentLink(int(words[-1]))
    order = link.order()
    set_up_logs(order.log_level, order.log_format, sys.stderr, {"child": order.number})
    try:
        return _run(order, link)
    except LowkiqError as error:
        if isinstance(error, AppNotFound) and error.__cause__:
            traceback.print_exception(error.__cause__)
        logger.error("%s", error)  # noqa: TRY400 - the sentence says all
        return MISUSED if isinstance(error, AppNotFound | ConfigError | DeclarationError) else FAILED


class ParentLink:
    """Read by its own thread, so that a child can be stopped even while it imports its app."""

    def __init__(self, descriptor: int) -> None:
        # What handlers start must not keep the connection open.
        os.set_inheritable(descriptor, False)  # noqa: FBT003 - the function takes no keywords
        self._socket = socket.socket(fileno=descriptor)
        self._rest = b""
        self._obey: Callable[[Word], None] | None = None
        self._status: Callable[[], Status] | None = None
        self._wants_quiet = False
        self._beginning = Lock()

    def order(self) -> Order:
        """The order of the parent, which is its first message; a thread waits for further messages from then on."""
        while not (lines := self._read()):
            pass
        if lines[0] is None:
            os._exit(0)
        Thread(target=self._run, args=(lines[1:],), name="lowkiq-parent", daemon=True).start()
        return msgspec.json.decode(lines[0], type=Order)

    def begin(self, obey: Callable[[Word], None], status: Callable[[], Status]) -> None:
        """The daemon is about to start: from now on it stops in good order, and the parent hears how it is."""
        with self._beginning:
            self._obey, self._status = obey, status
            if self._wants_quiet:
                obey("quiet")

    def _run(self, lines: list[bytes | None]) -> None:
        tells_at = monotonic()
        while True:
            for line in lines:
                self._hear(line)
                if line is None:
                    return
            if monotonic() >= tells_at:
                tells_at = monotonic() + (STATUS_INTERVAL if self._tell() else _BOOT_INTERVAL)
            readable, _, _ = select.select([self._socket], [], [], max(0.0, tells_at - monotonic()))
            lines = self._read() if readable else []

    def _read(self) -> list[bytes | None]:
        """The lines that have come; the last is None if the parent is gone."""
        part = b""
        with suppress(OSError):
            part = self._socket.recv(_MOST)
        *lines, self._rest = (self._rest + part).split(b"\n")
        return [*lines, *(() if part else (None,))]

    def _tell(self) -> bool:
        """Tell how the daemon is; False if it does not run yet."""
        status = self._status() if self._status else None
        if status is None or status.state == "starting":
            return False
        with suppress(OSError):
            self._socket.sendall(msgspec.json.encode(status) + b"\n")
        return True

    def _hear(self, line: bytes | None) -> None:
        word = "stop" if line is None else line.decode()
        with self._beginning:
            if self._obey is None:
                self._hear_at_boot(word)
                return
            if line is None:
                logger.error("the parent is gone: this process stops")
            for order in WORDS & {word}:
                self._obey(order)

    def _hear_at_boot(self, word: str) -> None:
        if word in {"stop", "now"}:
            # It has nothing yet: no lease, no job.
            os._exit(0)
        self._wants_quiet = self._wants_quiet or word == "quiet"


def _run(order: Order, link: ParentLink) -> int:
    app = load_app(order.app, Lowkiq)
    order.overrides.apply(app)
    if is_embedded(app.config.redis_url):
        # The parent has reported it already.
        attach(app.config, os.environ, tell=False)
    daemon = Daemon(app, ProcessDealer(order.number, order.processes), order.nonce_prefix)
    trace_file = TRACE_FILE.replace(".", f".{order.number}.")
    runner = ProcessRunner(daemon, app.config.shutdown_timeout, Path(order.folder, trace_file), has_parent=True)

    with Signals([SIGTERM, *FROM_TERMINAL]) as signals:

        def obey(word: Word) -> None:
            if word == "now":
                runner.leave_at_once()
            else:
                signals.send(_SIGNALS[word])

        link.begin(obey, lambda: Status(daemon.state, resident_memory()[0], app.core.drains.drainer.running))
        return runner.run_by(signals)


def _leave_to_parent(_number: int, _frame: FrameType | None) -> None:
    """Catches a signal that the parent gets, too."""


@dataclass(frozen=True)
class ProcessDealer:
    """For the child `number`, from 0, of `processes`: of the daemon's shards it prefers every `processes`-th.

    Leases keep processes apart in any case, so two of them may prefer the same shard, as they do while one replaces
    the other.
    """

    number: int
    processes: int

    @property
    def is_first(self) -> bool:
        """Whether this process warns of what concerns all of them."""
        return self.number == 0

    def boards(self, config: Config, shards: list[ShardRef], clock: Clock, rng: Random) -> list[ShardBoard]:
        """The board of each thread. What the user's splitter deals to a thread, no other helps with. ConfigError."""
        threads = config.threads_per_node
        if config.build_splitter is not None:
            dealt = hands(config, shards, threads * self.processes)
            own = dealt[threads * self.number : threads * (self.number + 1)]
            return [new_board(hand, config, clock, rng) for hand in own]
        of_node = shards_of_node(config, shards)
        (mine,) = ByNodeSplitter(self.processes, self.number).split(of_node, 1)
        kind = partial(HelpingBoard, frozenset(of_node).difference(mine))
        return [new_board(of_node, config, clock, rng, kind)] * threads


class HelpingBoard(ShardBoard):
    """A board where some shards are others' to visit: only probes that show them waiting count, and visits of ours."""

    def __init__(self, others: frozenset[ShardRef], *shards_and_more: Any) -> None:  # noqa: ANN401 - as ShardBoard has them
        super().__init__(*shards_and_more)
        self._others = others

    def deal_as(self, other: Self) -> None:
        """As for any board; others' shards are those of that one."""
        self._others = other._others
        super().deal_as(other)

    def notify(self, shards: Iterable[ShardRef]) -> None:
        """Somebody pushed: whose shard it is, visits it."""
        super().notify([shard for shard in shards if shard not in self._others])

    def update(self, results: Iterable[ProbeResult], event: int) -> None:
        """As for any shard; of others' those count that wait. They queue as if due now, so behind our own."""
        super().update(map(self._as_counted, results), event)

    def visited(self, shard: ShardRef, result: VisitResult, ready_in: float | None) -> None:
        """As for any shard; of others' those are forgotten that have nothing due now, or were not to be had."""
        if shard in self._others and result.exit is None:
            if ready_in is None or ready_in > 0:
                result, ready_in = VisitResult("empty"), None
            else:
                ready_in = 0.0
        super().visited(shard, result, ready_in)

    def own(self) -> Sequence[ShardRef]:
        """The shards that are this process's to visit."""
        return [shard for shard in self.shards if shard not in self._others]

    def _as_counted(self, result: ProbeResult) -> ProbeResult:
        if result.ref not in self._others:
            return result
        is_waiting = result.obstacle is None and result.lag > HELP_AFTER
        return replace(result, ready_in=0.0 if is_waiting else None)
