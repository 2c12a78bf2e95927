"""Time that a test moves."""

from threading import Lock


class ManualClock:
    """A clock that stands still until it is moved. Give it to `Lowkiq(config, clock=...)`."""

    def __init__(self, start: float = 1_800_000_000.0) -> None:
        self._wall = start
        self._monotonic = 1_000.0
        self._lock = Lock()

    def time(self) -> float:
        """Unix seconds."""
        return self._wall

    def monotonic(self) -> float:
        """Seconds since some moment."""
        return self._monotonic

    def sleep(self, seconds: float) -> None:
        """As `advance`: nobody waits."""
        self.advance(seconds)

    def advance(self, seconds: float) -> None:
        """Let time pass, by both clocks."""
        with self._lock:
            self._wall += seconds
            self._monotonic += seconds

    def set_wall(self, seconds: float) -> None:
        """Set the wall clock, as an administrator or a frozen machine does; the monotonic clock stays."""
        with self._lock:
            self._wall = seconds
