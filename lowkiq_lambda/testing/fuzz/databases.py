"""The engines of SQLAlchemy among the options of a fuzz. A fuzz without one imports nothing for them."""

import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any, TypeGuard

from lowkiq_lambda.base.errors import ConfigError

if TYPE_CHECKING:
    from sqlalchemy import Engine

    from lowkiq_lambda.testing.fuzz.engines import EngineUnderTest


def is_engine(value: object) -> "TypeGuard[Engine]":
    """Whether it is an engine of SQLAlchemy. Raises ConfigError for one whose driver is asynchronous."""
    sqlalchemy: Any = sys.modules.get("sqlalchemy")
    if sqlalchemy is None:
        return False
    if hasattr(value, "sync_engine"):
        raise ConfigError(
            "isolate= and watch= take an Engine of SQLAlchemy, not an AsyncEngine: write reset=, and watch functions."
        )
    return isinstance(value, sqlalchemy.Engine)


class Databases:
    """Those engines: put back before each scenario, points around their SQL, and what dead processes leave in them."""

    def __init__(
        self, isolated: Sequence[object], watching: Sequence[object], namespaces: Iterable[dict[str, Any]]
    ) -> None:
        self._namespaces = [*namespaces]
        to_restore, with_points = [*filter(is_engine, isolated)], [*filter(is_engine, watching)]
        self._engines: list[EngineUnderTest] = []
        # Each once.
        for engine in dict.fromkeys([*to_restore, *with_points]):
            from lowkiq_lambda.testing.fuzz import engines  # noqa: PLC0415 - SQLAlchemy is there then

            restores, points = engine in to_restore, engine in with_points
            self._engines.append(engines.EngineUnderTest(engine, restores=restores, points=points))

    @contextmanager
    def opened(self) -> Iterator[None]:
        """In the block the engines are watched. Raises ConfigError for a database that cannot be put back."""
        with ExitStack() as stack:
            for engine in self._engines:
                stack.enter_context(engine.opened())
            yield

    def begin_in_child(self) -> None:
        """The process is a fork: its engines get connections of their own, and its parent puts the tables back."""
        for engine in self._engines:
            engine.begin_in_child()
        for _, engine in self._of_kind("sqlalchemy", "Engine"):
            engine.dispose(close=False)

    def after_child(self) -> None:
        """A child has ended."""
        for engine in self._engines:
            engine.after_child()

    def restore(self) -> None:
        """Put the tables back as they were at the beginning. Raises ConfigError if one is locked."""
        for engine in self._engines:
            engine.restore()

    def release(self) -> None:
        """Roll back what dead processes have left open, as a server does for a client that is gone."""
        for engine in self._engines:
            engine.release()
        for _, session in self._of_kind("sqlalchemy.orm", "scoped_session"):
            # The next process of this thread begins with a session of its own.
            session.remove()

    def lock_is_awaited(self) -> bool | None:
        """Whether a process waits for a lock of a database; None if none of them can say that."""
        answers = [engine.lock_is_awaited() for engine in self._engines]
        return None if all(answer is None for answer in answers) else any(answers)

    @property
    def shared(self) -> list[str]:
        """The engines that have one connection for all, and the variables that hold a session for all."""
        engines = [engine.name for engine in self._engines if engine.is_shared]
        return engines + [name for name, _ in self._of_kind("sqlalchemy.orm", "Session")]

    def _of_kind(self, module: str, name: str) -> Iterator[tuple[str, Any]]:
        """The variables of the handler's modules that are of this class."""
        kind = getattr(sys.modules.get(module), name, None)
        if kind is not None:
            for namespace in self._namespaces:
                yield from [(each, value) for each, value in namespace.items() if isinstance(value, kind)]
