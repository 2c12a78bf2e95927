"""Points of a handler: "before this line", in the order in which a call of the handler comes to them.

Lines count in the user's code alone: below the project's folder, in no installed package, and in no double of the
outside world, nor in anything that such a double calls.
"""

import linecache
import sys
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from threading import get_ident
from types import CodeType, FrameType
from typing import Any, Final

import lowkiq_lambda
from lowkiq_lambda.testing.fuzz.bytecode import exits_of

_OWN: Final = str(Path(lowkiq_lambda.__file__).parent)
_INSTALLED: Final = ("/site-packages/", "/dist-packages/", "/.venv/", "/venv/")
_HAS_MONITORING: Final = sys.version_info >= (3, 12)
_TOOL: Final = 4
"""Of `sys.monitoring`: one that it reserves for nobody."""
MORE_HITS: Final = "#"


@dataclass(frozen=True, slots=True)
class CodePlace:
    """A line of the user's code, or the call of a watched function, which has the line 0.

    `function` has its name and `first` its first line; `hit` counts from 0 in a call of the handler.
    """

    file: str
    line: int
    function: str
    first: int
    hit: int = 0

    @property
    def name(self) -> str:
        """A name that stays the same if lines of other functions come or go."""
        more = f"{MORE_HITS}{self.hit}" if self.hit else ""
        if not self.line:
            return f"{self.function}{more}"
        return f"{Path(self.file).name}:{self.function}+{self.line - self.first}{more}"

    @property
    def text(self) -> str:
        """File, line and code, for people."""
        if not self.line:
            return self.function
        return f"{Path(self.file).name}:{self.line}  {linecache.getline(self.file, self.line).strip()}".rstrip()


class UserCode:
    """Which code is the user's: below `root`, and not in one of the functions `outside`."""

    def __init__(self, root: Path, outside: Collection[CodeType] = ()) -> None:
        self._root = f"{root}/"
        self._outside = frozenset(outside)
        self._is_user: dict[CodeType, bool] = {}
        self._exits: dict[CodeType, frozenset[int]] = {}

    def has(self, code: CodeType) -> bool:
        """Whether its lines are points."""
        is_user = self._is_user.get(code)
        if is_user is None:
            file = code.co_filename
            is_user = file.startswith(self._root) and not file.startswith(_OWN) and code not in self._outside
            is_user = is_user and not any(part in file for part in _INSTALLED) and code.co_name != "<module>"
            self._is_user[code] = is_user
        return is_user

    def leaves_block(self, frame: FrameType) -> bool:
        """Whether the frame is at the exit of a `with` block: nobody dies there."""
        exits = self._exits.get(frame.f_code)
        if exits is None:
            exits = self._exits[frame.f_code] = exits_of(frame.f_code)
        return frame.f_lasti in exits

    def is_outside(self, frame: FrameType | None) -> bool:
        """Whether a double of the outside world has called this frame."""
        while self._outside and frame is not None:
            if frame.f_code in self._outside:
                return True
            frame = frame.f_back
        return False


def _nothing(_frame: FrameType) -> None:
    """No process dies."""


class PointCounter:
    """Counts the points of one call of a handler; calls `act` with each, and its number.

    `before` is called with the frame of each line before that.
    """

    def __init__(
        self, act: Callable[[int, CodePlace], object], before: Callable[[FrameType], object] = _nothing
    ) -> None:
        self.places: list[CodePlace] = []
        self._hits: dict[object, int] = {}
        self._act = act
        self._before = before

    def note(self, frame: FrameType, line: int) -> None:
        """A line of the user's code is about to run. Raises what `before` and `act` do."""
        self._before(frame)
        code = frame.f_code
        hit = self._next_hit((code, line))
        self._add(CodePlace(code.co_filename, line, code.co_qualname, code.co_firstlineno, hit))

    def note_call(self, name: str) -> None:
        """A watched function is about to be called, or to answer. Raises what `act` does."""
        self._add(CodePlace(name, 0, name, 0, self._next_hit(name)))

    def _next_hit(self, key: object) -> int:
        hit = self._hits.get(key, 0)
        self._hits[key] = hit + 1
        return hit

    def _add(self, place: CodePlace) -> None:
        self.places.append(place)
        self._act(len(self.places) - 1, place)


@contextmanager
def counted(user_code: UserCode, counter: PointCounter) -> Iterator[None]:
    """In the block, lines that this thread runs are noted."""
    if _HAS_MONITORING:
        with _monitored(user_code, counter):
            yield
        return
    before, tracer = sys.gettrace(), _Tracer(user_code, counter)
    sys.settrace(tracer.on_call)
    try:
        yield
    finally:
        # An exception of a trace function has ended all tracing, that of a debugger or of coverage, too.
        sys.settrace(before)


class _Tracer:
    """The trace functions of a handler before Python 3.12."""

    def __init__(self, user_code: UserCode, counter: PointCounter) -> None:
        self._user_code = user_code
        self._counter = counter
        self._raising: FrameType | None = None

    def on_call(self, frame: FrameType, _event: str, _argument: object) -> Any:  # noqa: ANN401 - a trace function
        """A frame begins."""
        is_user = self._user_code.has(frame.f_code) and not self._user_code.is_outside(frame.f_back)
        return _OfFrame(self.on_line) if is_user else None

    def on_line(self, frame: FrameType, event: str, _argument: object) -> Any:  # noqa: ANN401 - a trace function
        """A frame is at a line. Raises what the counter does."""
        if event == "line" and not self._user_code.leaves_block(frame):
            self._raising = frame
            self._counter.note(frame, frame.f_lineno)
            self._raising = None
        return frame.f_trace

    def go_on(self) -> None:
        """Trace again if an exception of `on_line` has ended it."""
        frame, self._raising = self._raising, None
        if frame is not None:
            frame.f_trace = _OfFrame(self.on_line)
            sys.settrace(self.on_call)


class _OfFrame(partial[Any]):
    """The trace function of a frame, which alone refers to it: it goes once an exception of it has ended all tracing.

    That is the one moment at which tracing can go on before the frame does.
    """

    def __del__(self) -> None:
        self.func.__self__.go_on()  # type: ignore[attr-defined]  # it is a method


_counters: Final[dict[int, tuple[UserCode, PointCounter]]] = {}
"""The counter of each thread in which a handler runs."""


@contextmanager
def _monitored(user_code: UserCode, counter: PointCounter) -> Iterator[None]:
    monitoring: Any = sys.monitoring  # type: ignore[attr-defined,unused-ignore]  # of Python 3.12
    thread = get_ident()
    if not _counters:
        monitoring.use_tool_id(_TOOL, "lowkiq fuzz")
        monitoring.register_callback(_TOOL, monitoring.events.LINE, _on_line)
        monitoring.set_events(_TOOL, monitoring.events.LINE)
        # The user code of this fuzz may be what another one has switched off.
        monitoring.restart_events()
    _counters[thread] = user_code, counter
    try:
        yield
    finally:
        del _counters[thread]
        if not _counters:
            monitoring.set_events(_TOOL, 0)
            monitoring.free_tool_id(_TOOL)


def _on_line(code: CodeType, line: int) -> Any:  # noqa: ANN401 - a constant of `sys.monitoring`, or None
    user_code, counter = _counters.get(get_ident(), (None, None))
    if user_code is None or counter is None:
        return None
    if not user_code.has(code):
        monitoring: Any = sys.monitoring  # type: ignore[attr-defined,unused-ignore]  # as above
        return monitoring.DISABLE
    frame = sys._getframe(1)  # noqa: SLF001 - no other way to the callers
    if not (user_code.is_outside(frame) or user_code.leaves_block(frame)):
        counter.note(frame, line)
    return None
