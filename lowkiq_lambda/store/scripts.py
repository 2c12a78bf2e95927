"""The scripts, one `.lua` file for each transition, with the includes that they name put in front."""

from dataclasses import dataclass
from functools import cache
from hashlib import sha1
from importlib.resources import files
from typing import Final

CONTRACT_VERSION: Final = 1
"""Of the layout and of what scripts take and return; a shard keeps the least one that may write to it."""

_INCLUDE: Final = "--! include "


@dataclass(frozen=True)
class Script:
    """A script and the hash by which the server knows it."""

    name: str
    source: str
    sha: str


@cache
def script(name: str) -> Script:
    """The script of that name, read once."""
    lua = files(__package__) / "lua"
    text = (lua / f"{name}.lua").read_text()
    first = text.partition("\n")[0]
    names = first.removeprefix(_INCLUDE).split() if first.startswith(_INCLUDE) else []
    parts = [(lua / "include" / f"{include}.lua").read_text() for include in names]
    source = "\n".join([*parts, text])
    # The server's own name of a script, no signature.
    return Script(name, source, sha1(source.encode(), usedforsecurity=False).hexdigest())
