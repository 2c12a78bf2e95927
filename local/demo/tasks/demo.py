"""What the three demos have in common: a task is made, pushed to, followed to its end, and looked at."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Event
from time import monotonic
from typing import ClassVar
from zlib import crc32

from rich.console import Console

from local.demo.tasks.bar import showing
from lowkiq_lambda import Lowkiq, Worker
from lowkiq_lambda.declare.pushable import FunctionWorker
from lowkiq_lambda.local.daemon import Daemon
from lowkiq_lambda.tasks.task import Task
from lowkiq_lambda.tasks.views import Progress

SUCCESS, FAILURE, INTERRUPTED = 0, 1, 130
LOOK_INTERVAL = 0.1
PATIENCE = 90.0
"""Seconds without any change after which the demo gives up: longer than any lease that a killed run left."""


class DemoFailed(Exception):
    """The outcome is not as it has to be."""


class Demo(ABC):
    """One demo, to be run once."""

    size: ClassVar[int]
    unit: ClassVar[str]
    """What there are so many of."""
    worker: type[Worker] | FunctionWorker
    on_complete: tuple[FunctionWorker, object] | None = None

    def __init__(self, app: Lowkiq, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._app = app
        self._suffix = f"{crc32(bytes(folder.absolute())):08x}"
        self.declare(app, folder)

    def queue_name(self, name: str) -> str:
        """The name of a queue that demos in other folders do not have."""
        return f"{name}-{self._suffix}"

    @abstractmethod
    def declare(self, app: Lowkiq, folder: Path) -> None:
        """Declare the workers; files lie in the folder."""

    @abstractmethod
    def push(self, task: Task, size: int) -> Iterator[None]:
        """Push all items, with a pause after each call, in which somebody may look."""

    @abstractmethod
    def outcome(self, task: Task, size: int) -> Iterator[str]:
        """What has come of it, in lines. Raises DemoFailed."""

    def is_over(self, progress: Progress) -> bool:
        """Whether nothing is left to do."""
        return progress.state == "completed"

    def run(self, size: int, console: Console, stop: Event) -> int:
        """Run the demo; the exit code. `stop`: set from outside, it ends the demo as Ctrl-C does."""
        name, began_at = type(self).__name__.lower(), monotonic()
        console.print(f"{name} of {size:,} {self.unit}", highlight=False)
        task = self._app.task(name, on_complete=self.on_complete)
        with Daemon(self._app), showing(console) as show:
            try:
                with task:
                    for _ in self.push(task, size):
                        self._look(task, show, stop)
                self._follow(task, show, stop)
            except KeyboardInterrupt:
                task.cancel()
                console.print("Interrupted: the task is cancelled.", style="bold red")
                return INTERRUPTED
            except TimeoutError as error:
                console.print(str(error), style="bold red", highlight=False)
                return FAILURE
        return self._tell(task, size, console, monotonic() - began_at)

    def _follow(self, task: Task, show: Callable[[Progress], None], stop: Event) -> None:
        seen, since = "", monotonic()
        while not self.is_over(progress := self._look(task, show, stop)):
            if progress.version != seen:
                seen, since = progress.version, monotonic()
            if monotonic() > since + PATIENCE:
                raise TimeoutError(f"Nothing has happened for {PATIENCE:.0f} seconds.")
            stop.wait(LOOK_INTERVAL)

    def _look(self, task: Task, show: Callable[[Progress], None], stop: Event) -> Progress:
        if stop.is_set():
            raise KeyboardInterrupt
        progress = task.progress()
        show(progress)
        return progress

    def _tell(self, task: Task, size: int, console: Console, seconds: float) -> int:
        counts = ", ".join(f"{count:,} {status}" for status, count in task.progress().counts.items() if count)
        console.print(f"{counts} in {seconds:.1f} s", style="bold green", highlight=False)
        try:
            for line in self.outcome(task, size):
                console.print(line, markup=False, highlight=False, soft_wrap=True)
        except DemoFailed as error:
            console.print(f"FAILED: {error}", style="bold red", highlight=False)
            return FAILURE
        return SUCCESS
