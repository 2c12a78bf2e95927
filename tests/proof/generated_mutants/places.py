"""The faults that one change of one word, or one line less, makes of a Lua file."""

import re
from collections.abc import Iterator, Mapping
from typing import Final

import msgspec

from lint.lua import LUA
from lint.lua_parser import read_names
from lint.lua_tokens import LuaSyntaxError

CHANGES: Final[Mapping[str, str]] = {
    "<": "<=",
    "<=": "<",
    ">": ">=",
    ">=": ">",
    "==": "~=",
    "~=": "==",
    "and": "or",
    "or": "and",
    "+ 1": "+ 0",
    "- 1": "- 0",
    "math.max": "math.min",
    "math.min": "math.max",
    "'HSET'": "'HSETNX'",
    "not ": "",
}
"""What becomes of which words."""
_WORDS: Final = re.compile(r"<=|>=|==|~=|<|>|\band\b|\bor\b|[+-] 1(?![\d.])|\bmath\.(?:max|min)\b|'HSET'|\bnot (?=\S)")
_OPAQUE: Final = re.compile(r"--[^\n]*|'(?:\\.|[^'\\\n])*'")
_DEFINES: Final = re.compile(
    r"\s*(?:local|return|function|end|else|elseif|until|for|while|repeat|if .* then$|--)(?=\W|$)"
)


class LuaMutant(msgspec.Struct, frozen=True, order=True):
    """A line of a file, and what it becomes; `column` tells equal changes of a line from each other."""

    file: str
    line: int
    column: int
    before: str
    after: str

    @property
    def name(self) -> str:
        """The file with the line, and the change."""
        return f"{self.file}:{self.line} {self.change}"

    @property
    def change(self) -> str:
        """In a few words."""
        if not self.after:
            return f"without `{self.before.strip()}`"
        return f"`{self.before.strip()}` as `{self.after.strip()}`"

    @property
    def key(self) -> tuple[str, str, str]:
        """What stays the same while the lines around it change."""
        return self.file, self.before.strip(), self.after.strip()

    def of(self, text: str) -> str:
        """The text of the file with the fault in it."""
        lines = text.split("\n")
        assert lines[self.line - 1] == self.before, self.name
        lines[self.line - 1] = self.after
        return "\n".join(lines)


def text_of(file: str) -> str:
    """The text of the file, which is named by its path in the folder of scripts, without its ending."""
    return (LUA / f"{file}.lua").read_text()


def files_of(*folders: str) -> list[str]:
    """The files of these folders."""
    return [f"{folder}/{path.stem}" for folder in folders for path in sorted((LUA / folder).glob("*.lua"))]


def mutants_of(file: str) -> list[LuaMutant]:
    """All faults of the file that are Lua. Lines that look for damage are left out: no sound run goes past them."""
    text = text_of(file)
    made = [LuaMutant(file, *place) for place in _places(text)]
    # A line may be a statement by itself, and a part of one where it stands.
    return [mutant for mutant in made if mutant.after or _is_lua(mutant.of(text))]


def opaque(line: str) -> str:
    """The line with stars in the place of comments, and of strings but for 'HSET'."""
    return _OPAQUE.sub(lambda found: found[0] if found[0] == "'HSET'" else "*" * len(found[0]), line)


def _places(text: str) -> Iterator[tuple[int, int, str, str]]:
    for number, line in enumerate(text.split("\n"), 1):
        if "DAMAGED" in line:
            continue
        code = opaque(line)
        for found in _WORDS.finditer(code):
            changed = CHANGES[found[0]]
            yield number, found.start(), line, line[: found.start()] + changed + line[found.end() :]
        if line.strip() and not _DEFINES.match(line) and _is_lua(line):
            yield number, 0, line, ""


def _is_lua(text: str) -> bool:
    try:
        read_names(text)
    except LuaSyntaxError:
        return False
    return True
