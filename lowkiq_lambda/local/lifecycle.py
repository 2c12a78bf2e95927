"""The life of a daemon, from startup to its end: calls its hooks, and has its threads supervised."""

import logging
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from threading import Event
from typing import Final

from lowkiq_lambda.base.clock import at_most
from lowkiq_lambda.local.thread_supervisor import ThreadSupervisor
from lowkiq_lambda.settings.config import Config, each_of
from lowkiq_lambda.settings.protocols import Hook, Hooks, do_nothing
from lowkiq_lambda.views.processes import ProcessState

logger = logging.getLogger(__name__)

LOOK_INTERVAL: Final = 5.0
"""Seconds between two looks at the threads where nothing calls for one."""


class Lifecycle:
    """Runs in a thread of its own. `notify`, `quiet` and `stop` may be called from any other."""

    def __init__(self, config: Config, begin: Callable[[], None], end: Callable[[], object] = do_nothing) -> None:
        self._config = config
        self._begin = begin
        self._end = end
        self.alive: AbstractContextManager[object] = nullcontext()
        """Entered when the hook for the start is through, left when all is over."""
        self._news = Event()
        self._quiet = Event()
        self._stopping = Event()
        self.finished = Event()
        """It is over: all threads have ended after a stop, or it broke off."""
        self.broke_off = False

    @property
    def is_quiet(self) -> Event:
        """Set when nothing new is started any more."""
        return self._quiet

    @property
    def state(self) -> ProcessState:
        """The state of the daemon; `quiet`: it starts no new jobs."""
        if self._stopping.is_set():
            return "stopping"
        return "quiet" if self._quiet.is_set() else "running"

    def notify(self) -> None:
        """Wake the lifecycle, because something has changed."""
        self._news.set()

    def quiet(self) -> None:
        """Nothing new is started any more; this goes on."""
        self._quiet.set()
        self._news.set()

    def stop(self) -> None:
        """As `quiet`, and this ends when the last thread has."""
        self._stopping.set()
        self.quiet()

    def run(self, supervisor: ThreadSupervisor) -> None:
        """Start the threads, and go on until all is over."""
        try:
            self._run(supervisor)
        except BaseException:
            self.broke_off = True
            logger.critical("the daemon's own thread broke off", exc_info=True)
            raise
        finally:
            self.finished.set()

    def _run(self, supervisor: ThreadSupervisor) -> None:
        self._begin()
        call_hooks("on_startup", self._config.on_startup)
        with self.alive:
            self._live(supervisor)
        self._end()
        call_hooks("on_exit", backwards(self._config.on_exit))
        logger.info("stopped")

    def _live(self, supervisor: ThreadSupervisor) -> None:
        supervisor.start()
        self._until(self._quiet.is_set, supervisor.tend)
        logger.info("quiet: nothing new is started", extra={"running": supervisor.running()})
        call_hooks("on_quiet", backwards(self._config.on_quiet))
        self._until(self._stopping.is_set, supervisor.report)
        logger.info("stopping", extra={"running": supervisor.running()})
        call_hooks("on_shutdown", backwards(self._config.on_shutdown))
        self._until(lambda: not supervisor.running(), supervisor.report)
        supervisor.report()

    def _until(self, is_over: Callable[[], bool], tend: Callable[[], float]) -> None:
        """See to the threads whenever there is news, and every few seconds."""
        while True:
            # Cleared before the look, so that what happens after it is not missed.
            self._news.clear()
            if is_over():
                return
            self._news.wait(at_most(min(tend(), LOOK_INTERVAL)))


def backwards(hooks: Hooks) -> Sequence[Hook]:
    """The hooks in reverse: the first to begin is the last to end."""
    return each_of(hooks)[::-1]


def call_hooks(name: str, hooks: Hooks) -> None:
    """Call each hook of the user for an event."""
    for hook in each_of(hooks):
        call_hook(name, hook)


def call_hook(name: str, hook: Callable[..., object], *arguments: object) -> None:
    """Call a hook of the user. An exception is logged and otherwise ignored."""
    try:
        hook(*arguments)
    except BaseException:
        logger.exception("%s raised", name)
