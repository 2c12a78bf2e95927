"""Tokens of Lua 5.1, and a cursor over them."""

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

_TOKEN: Final = re.compile(
    r"""(?P<space> \s+ | --\[\[.*?\]\] | --[^\n]*)
    | (?P<name> [A-Za-z_]\w*)
    | (?P<value> 0x[\da-fA-F]+ | \d+\.?\d*(?:[eE][+-]?\d+)? | \[\[.*?\]\]
        | '(?:\\.|[^'\\\n])*' | "(?:\\.|[^"\\\n])*" | \.\.\.)
    | (?P<sign> \.\. | == | ~= | <= | >= | [-+*/%^#<>=(){}\[\];:,.])""",
    re.VERBOSE | re.DOTALL,
)
_KEYWORDS: Final = frozenset(
    [
        "and",
        "break",
        "do",
        "else",
        "elseif",
        "end",
        "false",
        "for",
        "function",
        "if",
        "in",
        "local",
        "nil",
        "not",
        "or",
        "repeat",
        "return",
        "then",
        "true",
        "until",
        "while",
    ]
)


class LuaSyntaxError(Exception):
    """The text is not Lua."""


class Token(NamedTuple):
    """A word of the text; `kind`: name, keyword, value, sign or end."""

    kind: str
    text: str
    line: int


class Tokens:
    """The tokens of a text, one after the other. Raises LuaSyntaxError."""

    def __init__(self, text: str) -> None:
        self._tokens = list(_tokens(text))
        self._at = 0

    @property
    def now(self) -> Token:
        """The token that comes next."""
        return self._tokens[self._at]

    @property
    def following(self) -> Token:
        """The one behind that."""
        return self._tokens[self._at + 1]

    def next(self) -> Token:
        """The token that comes next, which is passed."""
        self._at += 1
        return self._tokens[self._at - 1]

    def at(self, *texts: str) -> bool:
        """Whether a keyword or sign of these comes next."""
        return self.now.kind in {"keyword", "sign"} and self.now.text in texts

    def at_end(self) -> bool:
        """Whether a block ends here."""
        return self.now.kind == "end" or self.at("end", "else", "elseif", "until")

    def at_string(self) -> bool:
        """Whether a string comes next."""
        return self.now.kind == "value" and self.now.text[0] in "'\"["

    def take(self, *texts: str) -> bool:
        """As `at`; what comes next is passed then."""
        if not self.at(*texts):
            return False
        self._at += 1
        return True

    def expect(self, *texts: str) -> None:
        """Pass one of these."""
        if not self.take(*texts):
            raise LuaSyntaxError(f"line {self.now.line}: {self.now.text!r}, where {' or '.join(texts)} should be")

    def name(self) -> Token:
        """Pass a name."""
        if self.now.kind != "name":
            raise LuaSyntaxError(f"line {self.now.line}: {self.now.text!r}, where a name should be")
        return self.next()

    def names(self) -> list[Token]:
        """Pass names with commas between them."""
        found = [self.name()]
        while self.take(","):
            found.append(self.name())
        return found


def _tokens(text: str) -> Iterator[Token]:
    at, line = 0, 1
    while at < len(text):
        found = _TOKEN.match(text, at)
        if found is None:
            raise LuaSyntaxError(f"line {line}: {text[at]!r}")
        kind = found.lastgroup or ""
        if kind == "name" and found.group() in _KEYWORDS:
            kind = "keyword"
        if kind != "space":
            yield Token(kind, found.group(), line)
        line += found.group().count("\n")
        at = found.end()
    yield Token("end", "", line)
