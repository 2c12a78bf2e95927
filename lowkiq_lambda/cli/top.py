"""`lowkiq top`: the queues of an app on one live screen, by trouble, with keys for what operators do most."""

import os
import re
import select
import sys
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from lowkiq_lambda.base.clock import SystemClock
from lowkiq_lambda.base.errors import ConfigError, LowkiqError
from lowkiq_lambda.cli.codes import DONE
from lowkiq_lambda.cli.noting import note
from lowkiq_lambda.cli.parts import AppOption, command_app
from lowkiq_lambda.cli.queues import app_of
from lowkiq_lambda.views.activity import lacks_reason

if TYPE_CHECKING:
    from lowkiq_lambda.app import Lowkiq
    from lowkiq_lambda.cli.top_screen import Page
    from lowkiq_lambda.operate.queue_operations import QueueOperations

_HELP: Final = """
Show the queues of an app on one live screen: what needs somebody, then the queues, those in trouble first.

The screen is read again every two seconds, and says how old it is. It stays alive while Redis is slow or away.
"""
_EPILOGUE: Final = """
KEYS
  j k, arrows  move            /    filter by a part of a name
  Enter        open a queue    Esc  go back
  e            last errors     P    processes
  p            pause or resume the queue; it asks
  r            requeue the whole morgue of the queue; it asks
  ?            these keys      q    quit

  NO_COLOR=1 switches colours off. An act leaves a line in `lowkiq activity`.

EXIT CODES
  0  It was quit, or ended by Ctrl-C.
  2  The command line, the settings or the app cannot work, or there is no
     terminal.

EXAMPLES
  The queues of the app of this project:
    lowkiq top
  Those of production, as pyproject.toml names it:
    lowkiq top --context prod
"""
_TICK: Final = 0.25
"""Seconds until the screen is drawn again without a key."""
_ARROWS: Final = {"\x1b[A": "k", "\x1b[B": "j", "\x1bOA": "k", "\x1bOB": "j"}
_KEY: Final = re.compile(r"\x1b[\[O][A-D]|.", re.DOTALL)
_ESC: Final = "\x1b"

command: Final = command_app("top", help_=_HELP, epilogue=_EPILOGUE, usage="lowkiq top [OPTIONS]")


@command.default
def top(*, app: AppOption = None) -> int:
    """Show the screen until it is quit; the exit code."""
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise ConfigError("lowkiq top needs a terminal. Without one, `lowkiq stats --json` has the same numbers.")
    from rich.console import Console
    from rich.live import Live

    from lowkiq_lambda.cli.top_screen import screen

    desk = Desk(app_of(app))
    console = Console()
    with desk.looks, keys() as read_key, Live(console=console, screen=True, auto_refresh=False) as live:
        try:
            while not desk.is_over:
                size = console.size
                shown_at = SystemClock.monotonic()
                live.update(screen(desk.looks.latest, desk.choice, shown_at, size.width, size.height), refresh=True)
                desk.press(read_key(_TICK))
        except KeyboardInterrupt:
            return DONE
    return DONE


class Desk:
    """What is chosen on the screen, and what its keys do."""

    def __init__(self, app: "Lowkiq") -> None:
        from lowkiq_lambda.cli.top_looks import Looks
        from lowkiq_lambda.cli.top_screen import OnScreen

        self.looks = Looks(app)
        self.choice = OnScreen()
        self.is_over = False
        self._app = app
        self._act: Callable[[], str] | None = None

    def press(self, key: str) -> None:
        """Do what the key means; "" is none."""
        from lowkiq_lambda.cli.top_screen import rows_of

        choice = self.choice
        if not key:
            return
        if choice.question:
            self._answer(key)
        elif choice.is_typing:
            self._type(key)
        elif key in {"j", "k"}:
            last = max(0, len(rows_of(self.looks.latest, choice)) - 1)
            choice.row = min(last, max(0, choice.row + (1 if key == "j" else -1)))
        else:
            choice.message = ""
            act = {
                "q": self._quit,
                "\r": self._open,
                "\n": self._open,
                _ESC: self._back,
                "/": self._filter,
                "e": lambda: self._go("errors"),
                "P": lambda: self._go("processes"),
                "?": lambda: self._go("keys"),
                "p": self._ask_to_pause,
                "r": self._ask_to_requeue,
            }.get(key)
            if act is not None:
                act()

    def _quit(self) -> None:
        self.is_over = True

    def _go(self, page: "Page") -> None:
        self.choice.page = page

    def _back(self) -> None:
        self.choice.filter = "" if self.choice.page == "queues" else self.choice.filter
        self.choice.page, self.choice.queue = "queues", ""
        self.looks.open("")

    def _filter(self) -> None:
        self.choice.page, self.choice.is_typing, self.choice.filter, self.choice.row = "queues", True, "", 0

    def _type(self, key: str) -> None:
        choice = self.choice
        if key in {"\r", "\n", _ESC}:
            choice.is_typing = False
            choice.filter = "" if key == _ESC else choice.filter
        elif key in {"\x7f", "\b"}:
            choice.filter = choice.filter[:-1]
        elif key.isprintable():
            choice.filter += key
        choice.row = 0

    def _open(self) -> None:
        if self.choice.page == "queues" and (name := self._name()):
            self.choice.page, self.choice.queue = "queue", name
            self.looks.open(name)

    def _name(self) -> str:
        """The queue that the keys are about; "" for none."""
        from lowkiq_lambda.cli.top_screen import rows_of

        if self.choice.queue:
            return self.choice.queue
        rows = rows_of(self.looks.latest, self.choice)
        return rows[min(self.choice.row, len(rows) - 1)].name if rows else ""

    def _ask_to_pause(self) -> None:
        name = self._name()
        queue = next((each for each in self.looks.latest.queues if each.name == name), None)
        if queue is None:
            return
        is_paused = queue.now.paused > 0
        self.choice.question = f"{'Resume' if is_paused else 'Pause'} {name}?"
        self._act = lambda: self._pause(name, is_paused=is_paused)

    def _pause(self, name: str, *, is_paused: bool) -> str:
        operate = self._operate(name)
        if is_paused:
            operate.resume()
        else:
            operate.pause()
        note(self._app, name, "resume" if is_paused else "pause", "the queue", len(operate.shards()), "by lowkiq top")
        return f"{name} is {'resumed' if is_paused else 'paused until it is resumed'}."

    def _ask_to_requeue(self) -> None:
        name = self._name()
        queue = next((each for each in self.looks.latest.queues if each.name == name), None)
        if queue is None or not queue.now.morgue_length:
            self.choice.message = "Nothing is in the morgue of this queue."
            return
        if missing := lacks_reason("", queue.now.morgue_length):
            self.choice.message = f"{missing} Give it: lowkiq requeue {name} --all --reason TEXT"
            return
        self.choice.question = f"Requeue all {queue.now.morgue_length:,} ids in the morgue of {name}?"
        self._act = lambda: self._requeue(name)

    def _requeue(self, name: str) -> str:
        requeued = self._operate(name).morgue.requeue(everything=True)
        note(self._app, name, "requeue", "all", int(requeued), "by lowkiq top", action_id=requeued.action_id)
        return f"{requeued:,} ids of {name} wait again. `lowkiq undo` takes it back."

    def _operate(self, name: str) -> "QueueOperations":
        return self._app.operate(next(each for each in self._app.workers if each.queue_name == name))

    def _answer(self, key: str) -> None:
        self.choice.question, act, self._act = "", self._act, None
        if key != "y" or act is None:
            self.choice.message = "Nothing was changed."
            return
        try:
            self.choice.message = act()
        except (LowkiqError, ValueError) as error:
            self.choice.message = f"Nothing is known to have changed: {error}"
        self.looks.renew()


@contextmanager
def keys() -> Iterator[Callable[[float], str]]:
    """A function that waits so many seconds for a key, and returns it; an arrow is `j` or `k`, "" is none."""
    import termios  # which Windows has not
    import tty

    source = sys.stdin.fileno()
    before = termios.tcgetattr(source)

    pressed = deque[str]()

    def read_key(seconds: float) -> str:
        if not pressed and select.select([source], [], [], seconds)[0]:
            # People who type fast, and terminals that paste, send several at once.
            pressed.extend(_KEY.findall(os.read(source, 1_024).decode(errors="ignore")))
        key = pressed.popleft() if pressed else ""
        return _ARROWS.get(key, key)

    try:
        tty.setcbreak(source)
        yield read_key
    finally:
        termios.tcsetattr(source, termios.TCSADRAIN, before)
