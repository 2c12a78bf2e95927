"""The scripts, one `.lua` file for each transition, with the includes that they name put in front."""

from dataclasses import dataclass
from functools import cache
from hashlib import sha1
from importlib.resources import files
from typing import Final

from lowkiq_lambda.store.keys import SHARD_KEYS

CONTRACT_VERSION: Final = 1
"""Of the layout and of what scripts take and return; a shard keeps the least one that may write to it."""

_INCLUDE: Final = "--! include "
_KEYS: Final = "--! keys "


@dataclass(frozen=True)
class Script:
    """A script and the hash by which the server knows it."""

    name: str
    source: str
    sha: str
    keys: tuple[str, ...] = SHARD_KEYS
    """The names of the keys that it is given. Nearly all get all: one order, one prelude."""


@cache
def script(name: str) -> Script:
    """The script of that name, read once."""
    lua = files(__package__) / "lua"
    text = (lua / f"{name}.lua").read_text()
    includes, keys = _named(text, _INCLUDE), _named(text, _KEYS)
    parts = [(lua / "include" / f"{include}.lua").read_text() for include in includes]
    source = "\n".join([*parts, text])
    # The server's own name of a script, no signature.
    sha = sha1(source.encode(), usedforsecurity=False).hexdigest()
    return Script(name, source, sha, tuple(keys) or SHARD_KEYS)


def _named(text: str, mark: str) -> list[str]:
    """What the script's first line names behind the mark, if it has it."""
    first = text.partition("\n")[0]
    return first.removeprefix(mark).split() if first.startswith(mark) else []
