"""What all servers have in common for a `with` block."""

from abc import ABC, abstractmethod
from types import TracebackType
from typing import Self


class Started(ABC):
    """Is started at the beginning of the block and ended at its end, or at once where it does not start."""

    @abstractmethod
    def start(self) -> Self:
        """Start; returns when it answers."""

    @abstractmethod
    def close(self) -> None:
        """End it, and remove all that it kept. Harmless to repeat."""

    def __enter__(self) -> Self:
        try:
            return self.start()
        except BaseException:
            self.close()
            raise

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
