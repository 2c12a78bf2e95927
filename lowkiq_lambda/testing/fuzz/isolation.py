"""The state beside the queue: put back before each scenario, and freed of what a dead process leaves open."""

import copy
import sqlite3
import threading
from collections.abc import Callable, Iterable, Iterator, MutableMapping, MutableSequence, MutableSet
from contextlib import suppress
from pathlib import Path
from types import FunctionType
from typing import Any, Final

from lowkiq_lambda.base.errors import ConfigError

_CONTAINERS: Final = (MutableMapping, MutableSequence, MutableSet, sqlite3.Connection)
_OF_A_CONNECTION: Final = ("commit", "rollback", "cursor", "close")
"""The methods by which a connection of a database driver is recognized (PEP 249)."""


def restorer(states: object) -> Callable[[], None]:
    """A function that puts these back as they are now: dicts, lists, sets, other objects, and SQLite connections.

    Several are given as a tuple. Raises ConfigError for what it cannot put back.
    """
    restores = [_restore(state) for state in (states if isinstance(states, tuple) else (states,))]

    def restore() -> None:
        for one in restores:
            one()

    return restore


def _restore(state: Any) -> Callable[[], object]:  # noqa: ANN401 - any object
    if isinstance(state, sqlite3.Connection):
        return _restore_sqlite(state)
    if isinstance(state, MutableMapping):
        return _items_restored(state, copy.deepcopy(dict(state)))
    if isinstance(state, MutableSequence):
        if state and all(isinstance(one, _CONTAINERS) for one in state):
            raise ConfigError("isolate= takes several objects as a tuple: isolate=(orders, mails).")
        listed = copy.deepcopy([*state])
        return lambda: state.__setitem__(slice(None), copy.deepcopy(listed))
    if isinstance(state, MutableSet):
        return _members_restored(state, {*state})
    if hasattr(state, "__dict__") and not isinstance(state, type | FunctionType):
        return _items_restored(vars(state), copy.deepcopy(vars(state)))
    raise ConfigError(
        f"isolate= cannot put back {state!r}: give dicts, lists, sets, objects or SQLite connections, or write reset=."
    )


def _items_restored(items: MutableMapping[Any, Any], before: dict[Any, Any]) -> Callable[[], None]:
    def restore() -> None:
        items.clear()
        items.update(copy.deepcopy(before))

    return restore


def _members_restored(members: MutableSet[Any], before: set[Any]) -> Callable[[], None]:
    def restore() -> None:
        members.clear()
        for member in before:
            members.add(member)

    return restore


def _restore_sqlite(connection: sqlite3.Connection) -> Callable[[], object]:
    connection.rollback()
    content = connection.serialize()

    def restore() -> None:
        connection.rollback()
        # Other connections to the file see it, which `deserialize` would not do.
        source = sqlite3.connect(":memory:")
        try:
            source.deserialize(content)
            source.backup(connection)
        finally:
            source.close()

    return restore


class OpenConnections:
    """The connections of a database in the variables of modules, and in their thread-locals.

    A process that dies has its transactions rolled back; and a connection in a variable of a module is one that two
    processes would share here, which no two real ones do.
    """

    def __init__(self, namespaces: Iterable[dict[str, Any]]) -> None:
        self._namespaces = [*namespaces]

    def shared(self) -> list[str]:
        """The names of variables with a connection."""
        return [name for name, value in self._variables() if _is_connection(value)]

    def are_open(self) -> bool:
        """Whether there is any, also of this thread: a forked child would share its socket or file."""
        for _, value in self._variables():
            own = [*vars(value).values()] if isinstance(value, threading.local) else [value]
            if any(map(_is_connection, own)):
                return True
        return False

    def roll_back(self) -> None:
        """As a server does for a client that is gone."""
        for _, value in self._variables():
            own = [*vars(value).values()] if isinstance(value, threading.local) else [value]
            for one in own:
                if _is_connection(one):
                    # One of another thread, or one that is closed.
                    with suppress(Exception):
                        one.rollback()

    def _variables(self) -> Iterator[tuple[str, Any]]:
        for variables in self._namespaces:
            yield from [*variables.items()]


def _is_connection(value: object) -> bool:
    if isinstance(value, type):
        return False
    kind = type(value)
    return all(callable(getattr(kind, name, None)) for name in _OF_A_CONNECTION)


def project_of(file: str) -> Path:
    """The folder below which code is the user's: that of the nearest pyproject.toml, else that of the file."""
    from lowkiq_lambda.settings.project import project_root  # noqa: PLC0415 - as the command line finds it

    return project_root(Path(file).resolve().parent)
