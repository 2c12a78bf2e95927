"""Makes a function's package lean: parts that nothing in it needs go, or are imported at their first use.

Parts of Powertools and of what the extra `lambda` brought for the dashboard go. The redis-py of a package imports
clients, their commands, its asynchronous half, and what reads versions, when they are used.

redis-py imports all of it, and asyncio, with the first `import redis`: much of a start, for nothing.
A handler that uses `redis.asyncio` has all of it, from its first use on. Only packages are changed: in other
processes redis-py is as it was installed.
"""

import re
import shutil
from collections.abc import Mapping, Sequence
from importlib.metadata import Distribution, distributions
from pathlib import Path
from typing import Final, NamedTuple

from lowkiq_lambda.stack.packaging.contents import REQUIREMENTS
from lowkiq_lambda.stack.scaffold.owned import lock_file

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
    if name in {"__all__", "__version__"} or not name.startswith("__"):
        from importlib.util import find_spec

        if find_spec(f"{__name__}.{name}"):
            return import_module(f"{__name__}.{name}")
        everything = vars(import_module(f"{__name__}._everything"))
        dunder = {"__all__", "__version__"}
        globals().update({key: value for key, value in everything.items() if key in dunder or key[:2] != "__"})
        if name in globals():
            return globals()[name]
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
'''

_POWERTOOLS: Final = "aws_lambda_powertools"
_PARTS: Final[Mapping[str, Sequence[str]]] = {
    "pydantic": (
        f"{_POWERTOOLS}/event_handler",
        *(f"{_POWERTOOLS}/utilities/{name}" for name in ("auth_alpha", "parser")),
    ),
    "jsonpath_ng": (f"{_POWERTOOLS}/utilities/data_masking",),
    "fastjsonschema": (f"{_POWERTOOLS}/utilities/validation",),
    "django": ("lowkiq_lambda/contrib/django",),
    "pybreaker": ("redis/multidb", "redis/asyncio/multidb"),
    "opentelemetry": ("lowkiq_lambda/contrib/otel",),
}
"""Parts that are of no use without a package, by its name: most cannot even be imported.

The logger of Powertools turns models of pydantic into JSON by a part of what answers requests.
"""

_NAME: Final = re.compile(r"^[A-Za-z0-9][\w.-]*", re.MULTILINE)
_LIBRARY: Final = "lowkiq-lambda"


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
_INITS: Final = ("", "asyncio/")
"""The folders of the packages whose names are imported with their first use."""


def postpone(into: Path) -> str | None:
    """Change the package's redis-py in that folder; a warning, and nothing is changed, if it is not as expected."""
    redis = into / "redis"
    try:
        changed = {name: _edited((redis / name).read_text(encoding="utf-8"), edits) for name, edits in _EDITS.items()}
        changed |= {
            f"{name}_everything.py": (redis / name / "__init__.py").read_text(encoding="utf-8") for name in _INITS
        }
    except (OSError, ValueError):
        return "This redis-py is not the one that is known here: cold starts take a fifth longer than they need."
    changed |= {"_later.py": _LATER, **{f"{name}__init__.py": _STUB for name in _INITS}}
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


def thin_out(into: Path) -> None:
    """Remove them from the package in that folder, unless the app has brought what they need."""
    for needed, parts in _PARTS.items():
        for part in () if (into / needed).exists() else parts:
            shutil.rmtree(into / part, ignore_errors=True)


def forget_installation(into: Path) -> None:
    """Remove the lists of installed files, which are for those who remove a package: `leave_out_pages` is the last."""
    for record in into.glob("*.dist-info/RECORD"):
        record.unlink()


def leave_out_pages(into: Path) -> None:
    """Remove them, but for those that the app's requirements.txt names, or another package in that folder may need."""
    there = {_plain(each.name): each for each in distributions(path=[str(into)])}
    without, with_pages = (_names(lock_file(f"{kind}-function")) for kind in ("drain", "dashboard"))
    candidates = (with_pages - without) & there.keys()
    names = _names(into / REQUIREMENTS) | (there.keys() - candidates) - {_LIBRARY}
    reached = {_LIBRARY}
    while new := names - reached:
        reached |= new
        names |= {name for each in new & there.keys() for name in _wanted_by(there[each])}
    for name in candidates - names:
        _remove(there[name], into)


def _remove(one: Distribution, into: Path) -> None:
    for top in {file.parts[0] for file in one.files or ()} - {".."}:
        path = into / top
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)


def _wanted_by(one: Distribution) -> set[str]:
    # Whatever the marker: one package too many costs less than one that is missing.
    return {_plain(match[0]) for each in one.requires or () if (match := _NAME.match(each))}


def _names(requirements: Path) -> set[str]:
    text = requirements.read_text(encoding="utf-8") if requirements.exists() else ""
    return {_plain(name) for name in _NAME.findall(text)}


def _plain(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()
