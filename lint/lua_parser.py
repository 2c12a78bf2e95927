"""Reads a Lua file for its names: which it defines, which it takes from elsewhere, and which it never uses.

A parser of Lua 5.1 that keeps nothing but names: packages that build a syntax tree take seconds for what is done here
in a tenth of one. It accepts some texts that Lua refuses, never the other way round.
"""

from collections.abc import Callable, Iterable, Mapping
from functools import cache
from typing import Final

from lint.lua_names import Names, Scopes
from lint.lua_tokens import LuaSyntaxError, Token, Tokens

_BINARY: Final = frozenset(["+", "-", "*", "/", "%", "^", "..", "<", "<=", ">", ">=", "==", "~=", "and", "or"])
"""In no order: precedence says nothing about names."""


@cache
def read_names(text: str) -> Names:
    """The names of a file with that text. Raises LuaSyntaxError."""
    return _Parser(text).names()


class _Parser:
    def __init__(self, text: str) -> None:
        self._tokens = Tokens(text)
        self._scopes = Scopes()
        self._statement_of: Mapping[str, Callable[[], None]] = {
            "local": self._local,
            "if": self._if,
            "for": self._for,
            "function": self._named_function,
            "while": self._while,
            "repeat": self._repeat,
            "do": self._block,
            "return": self._return,
            "break": lambda: None,
            ";": lambda: None,
        }

    def names(self) -> Names:
        self._statements()
        if self._tokens.now.kind != "end":
            raise LuaSyntaxError(f"line {self._tokens.now.line}: {self._tokens.now.text!r}")
        return self._scopes.names()

    def _statements(self) -> None:
        while not self._tokens.at_end():
            if self._tokens.at(*self._statement_of):
                self._statement_of[self._tokens.next().text]()
            else:
                self._assignment_or_call()

    def _block(self, names: Iterable[Token] = ()) -> None:
        self._scopes.begin(names)
        self._statements()
        self._tokens.expect("end")
        self._scopes.end()

    def _local(self) -> None:
        if self._tokens.take("function"):
            self._scopes.define_function(self._tokens.name())
            self._function()
            return
        names = self._tokens.names()
        if self._tokens.take("="):
            self._expressions()
        self._scopes.define(names)

    def _if(self) -> None:
        self._expression()
        self._tokens.expect("then")
        self._scopes.begin()
        self._statements()
        self._scopes.end()
        if self._tokens.take("elseif"):
            self._if()
        elif self._tokens.take("else"):
            self._block()
        else:
            self._tokens.expect("end")

    def _for(self) -> None:
        names = self._tokens.names()
        self._tokens.expect("=", "in")
        self._expressions()
        self._tokens.expect("do")
        self._block(names)

    def _named_function(self) -> None:
        self._scopes.use(self._tokens.name())
        while self._tokens.take(".", ":"):
            self._tokens.name()
        self._function()

    def _while(self) -> None:
        self._expression()
        self._tokens.expect("do")
        self._block()

    def _repeat(self) -> None:
        self._scopes.begin()
        self._statements()
        self._tokens.expect("until")
        # It sees the locals of the block.
        self._expression()
        self._scopes.end()

    def _return(self) -> None:
        if not (self._tokens.at_end() or self._tokens.at(";")):
            self._expressions()

    def _assignment_or_call(self) -> None:
        targets = [self._target()]
        while self._tokens.take(","):
            targets.append(self._target())
        if self._tokens.take("="):
            self._expressions()
        for name in targets:
            if name:
                self._scopes.write(name)

    def _target(self) -> Token | None:
        """The name, where the target is nothing but that."""
        if self._tokens.now.kind == "name" and self._tokens.following.text in {"=", ","}:
            return self._tokens.next()
        self._suffixed()
        return None

    def _expressions(self) -> None:
        self._expression()
        while self._tokens.take(","):
            self._expression()

    def _expression(self) -> None:
        while self._tokens.take("not", "-", "#"):
            pass
        if self._tokens.now.kind == "value":
            self._tokens.next()
        elif self._tokens.take("function"):
            self._function()
        elif self._tokens.at("{"):
            self._table()
        elif not self._tokens.take("nil", "true", "false"):
            self._suffixed()
        if self._tokens.take(*_BINARY):
            self._expression()

    def _suffixed(self) -> None:
        """A name, or an expression in parentheses, and what is called or looked up in it."""
        rarely = self._tokens.now.text == "rarely"
        if self._tokens.take("("):
            self._expression()
            self._tokens.expect(")")
        else:
            self._scopes.use(self._tokens.name())
        while True:
            if self._tokens.take("."):
                name = self._tokens.name()
                if rarely:
                    self._scopes.use_rarely(name)
                rarely = False
            elif self._tokens.take("["):
                self._expression()
                self._tokens.expect("]")
            elif self._tokens.take(":"):
                self._tokens.name()
                self._arguments()
            elif self._tokens.at("(", "{") or self._tokens.at_string():
                self._arguments()
            else:
                return

    def _arguments(self) -> None:
        if self._tokens.at_string():
            self._tokens.next()
        elif self._tokens.at("{"):
            self._table()
        else:
            self._tokens.expect("(")
            if not self._tokens.at(")"):
                self._expressions()
            self._tokens.expect(")")

    def _table(self) -> None:
        self._tokens.expect("{")
        while not self._tokens.take("}"):
            if self._tokens.take("["):
                self._expression()
                self._tokens.expect("]")
                self._tokens.expect("=")
            elif self._tokens.now.kind == "name" and self._tokens.following.text == "=":
                self._tokens.next()
                self._tokens.expect("=")
            self._expression()
            if not self._tokens.at("}"):
                self._tokens.expect(",", ";")

    def _function(self) -> None:
        self._tokens.expect("(")
        names = []
        while not self._tokens.take(")"):
            if self._tokens.now.kind == "value":
                # What is passed on as "...".
                self._tokens.next()
            else:
                names.append(self._tokens.name())
            self._tokens.take(",")
        self._block(names)
