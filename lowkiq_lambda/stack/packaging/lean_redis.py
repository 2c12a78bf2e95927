"""Lets the redis-py of a package import its asynchronous half, and what reads versions, when they are used.

redis-py imports both, and asyncio, with the first `import redis`: a fifth of the drain function's start, for nothing.
A handler that uses `redis.asyncio` has all of it, from its first use on. This is done to packages alone: in other
processes redis-py is as it was installed.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

_LATER: Final = '''"""Modules that are imported when they are used first: put here by lowkiq_lambda's builder."""

from importlib import import_module
from types import ModuleType


class Later(ModuleType):
    def __getattr__(self, name):
        return getattr(import_module(self.__name__), name)


asyncio = Later("asyncio")
metadata = Later("importlib.metadata")
'''

_STUB: Final = '''"""What _everything.py has, which is imported with the first use of its names.

lowkiq_lambda's builder put this here; _everything.py is redis-py's own __init__.py.
"""

from importlib import import_module


def __getattr__(name):
    if name == "__all__" or not name.startswith("__"):
        from importlib.util import find_spec

        if find_spec(f"{__name__}.{name}"):
            return import_module(f"{__name__}.{name}")
        everything = vars(import_module(f"{__name__}._everything"))
        globals().update({key: value for key, value in everything.items() if key == "__all__" or key[:2] != "__"})
        if name in globals():
            return globals()[name]
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
'''


class Edit(NamedTuple):
    """A line that is in a file once, and what takes its place."""

    line: str
    by: str


_EDITS: Final[Mapping[str, Sequence[Edit]]] = {
    "utils.py": [Edit("from importlib import metadata", "from redis._later import metadata")],
    "_parsers/base.py": [
        Edit("from asyncio import IncompleteReadError, StreamReader", "from redis._later import asyncio"),
        Edit(
            "        self._stream: Optional[StreamReader] = None",
            '        self._stream: "Optional[asyncio.StreamReader]" = None',
        ),
        Edit(
            "            except IncompleteReadError as error:",
            "            except asyncio.IncompleteReadError as error:",
        ),
    ],
    # Its annotations would use asyncio at once.
    "event.py": [Edit("import asyncio", "from __future__ import annotations\n\nfrom redis._later import asyncio")],
    "commands/cluster.py": [Edit("import asyncio", "from redis._later import asyncio")],
}
_ASYNCIO: Final = "asyncio/__init__.py"


def postpone(into: Path) -> str | None:
    """Change the package's redis-py in that folder; a warning, and nothing is changed, if it is not as expected."""
    redis = into / "redis"
    try:
        changed = {name: _edited((redis / name).read_text(encoding="utf-8"), edits) for name, edits in _EDITS.items()}
        everything = (redis / _ASYNCIO).read_text(encoding="utf-8")
    except (OSError, ValueError):
        return "This redis-py is not the one that is known here: cold starts take a fifth longer than they need."
    changed |= {"_later.py": _LATER, "asyncio/_everything.py": everything, _ASYNCIO: _STUB}
    for name, text in changed.items():
        (redis / name).write_text(text, encoding="utf-8")
    return None


def _edited(text: str, edits: Sequence[Edit]) -> str:
    """Raises ValueError where a line is not there once."""
    lines = text.splitlines()
    for edit in edits:
        if lines.count(edit.line) != 1:
            raise ValueError(edit.line)
        lines[lines.index(edit.line)] = edit.by
    return "\n".join([*lines, ""])
