"""The scripts, one `.lua` file for each transition, with the includes that they name put in front.

A file's first lines may say `--! include NAMES`; `--! rarely NAMES`, for includes whose functions are reached through
`rarely()`; and `--! keys NAMES`, where it is not given all keys of a shard. A function costs a script a microsecond
each time that it is defined, and most calls need few of them.
"""

import re
from functools import cache
from hashlib import sha1
from importlib.resources import files
from itertools import takewhile
from typing import Final

import msgspec

from lowkiq_lambda.store.shard.keys import SHARD_KEYS

CONTRACT_VERSION: Final = 1
"""Of the layout and of what scripts take and return; a shard keeps the least one that may write to it."""

_LUA: Final = files("lowkiq_lambda.store") / "lua"
_FOLDERS: Final = ("drain", "push", "operate", "read")
"""What has scripts, by who calls them; no two have the same name."""
_MARK: Final = "--! "
_FUNCTION: Final = re.compile(r"^local function (\w+)", re.MULTILINE)


class Script(msgspec.Struct, frozen=True):
    """A script and the hash by which the server knows it."""

    name: str
    source: str
    sha: str
    keys: tuple[str, ...] = SHARD_KEYS
    """The names of the keys that it is given. Nearly all get all: one order, one prelude."""


@cache
def script(name: str) -> Script:
    """The script of that name, read once."""
    (text,) = [file.read_text() for folder in _FOLDERS if (file := _LUA / folder / f"{name}.lua").is_file()]
    marks = _marks(text)
    first, *others = [_included(include) for include in marks.get("include", ())] or [""]
    rarely = [_included(include) for include in marks.get("rarely", ())]
    source = "\n".join([first, *(["local rarely"] if rarely else []), *others, *_library(rarely), text])
    # The server's own name of a script, no signature.
    sha = sha1(source.encode(), usedforsecurity=False).hexdigest()
    return Script(name, source, sha, marks.get("keys", SHARD_KEYS))


def _included(name: str) -> str:
    return (_LUA / "include" / f"{name}.lua").read_text()


def _marks(text: str) -> dict[str, tuple[str, ...]]:
    """What the script's first lines name, by their first word."""
    lines = takewhile(lambda line: line.startswith(_MARK), text.splitlines())
    words = (line.removeprefix(_MARK).split() for line in lines)
    return {first: tuple(names) for first, *names in words}


def _library(parts: list[str]) -> list[str]:
    """`rarely()`: defines the parts' functions when it is called first, and returns them by their names."""
    if not parts:
        return []
    names = _FUNCTION.findall("\n".join(parts))
    exports = ", ".join(f"{name} = {name}" for name in names)
    return [
        "local library",
        "rarely = function()",
        "if library then return library end",
        *parts,
        f"library = {{{exports}}}",
        "return library end",
    ]
