"""The names of a Lua file, and the scopes in which they stand."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from lint.lua_tokens import Token


class Names(NamedTuple):
    """The names of a file, each with the line where it stands first."""

    defines: Mapping[str, int]
    """Its own locals, which files that include it may use."""
    functions: frozenset[str]
    """Of these, those that are functions."""
    used_here: frozenset[str]
    """Of these, those that it uses itself."""
    takes: Mapping[str, int]
    """Those that it uses and does not define."""
    rarely: Mapping[str, int]
    """Those behind `rarely()`."""
    unused: Sequence[tuple[str, int]]
    """Locals and arguments of its functions that are never read; but those whose name begins with `_`."""


@dataclass
class _Scope:
    names: dict[str, int] = field(default_factory=dict)
    used: set[str] = field(default_factory=set)


class Scopes:
    """Follows what is defined and used, from the top of a file to its end."""

    def __init__(self) -> None:
        self._scopes = [_Scope()]
        self._functions: set[str] = set()
        self._takes: dict[str, int] = {}
        self._rarely: dict[str, int] = {}
        self._unused: list[tuple[str, int]] = []

    def names(self) -> Names:
        """What was found, at the end."""
        (top,) = self._scopes
        functions, used = frozenset(self._functions), frozenset(top.used)
        return Names(top.names, functions, used, self._takes, self._rarely, self._unused)

    def begin(self, names: Iterable[Token] = ()) -> None:
        """A block begins, with these names in it."""
        self._scopes.append(_Scope())
        self.define(names)

    def end(self) -> None:
        """The block ends."""
        scope = self._scopes.pop()
        for name in scope.names:
            self._note_unused(scope, name)

    def define(self, names: Iterable[Token]) -> None:
        """Locals begin here."""
        scope = self._scopes[-1]
        for name in names:
            if name.text in scope.names and len(self._scopes) > 1:
                self._note_unused(scope, name.text)
                scope.used.discard(name.text)
            scope.names[name.text] = name.line

    def define_function(self, name: Token) -> None:
        """A local function begins here."""
        if len(self._scopes) == 1:
            self._functions.add(name.text)
        self.define([name])

    def use(self, name: Token) -> None:
        """The name is read."""
        for scope in reversed(self._scopes):
            if name.text in scope.names:
                scope.used.add(name.text)
                return
        self._takes.setdefault(name.text, name.line)

    def use_rarely(self, name: Token) -> None:
        """The name stands behind `rarely()`."""
        self._rarely.setdefault(name.text, name.line)

    def write(self, name: Token) -> None:
        """The name is written to: what is done to a local so is not a use of it."""
        if not any(name.text in scope.names for scope in self._scopes):
            self.use(name)

    def _note_unused(self, scope: _Scope, name: str) -> None:
        if name not in scope.used and not name.startswith("_"):
            self._unused.append((name, scope.names[name]))
