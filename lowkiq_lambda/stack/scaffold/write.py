"""Writes a new project: its names, the files for people to change, and those of the stack."""

import json
import keyword
import re
import sys
import tempfile
from collections.abc import Iterator, Mapping
from enum import StrEnum
from importlib.metadata import distribution
from pathlib import Path
from string import Template
from typing import Final
from urllib.parse import urlsplit
from urllib.request import url2pathname

from lowkiq_lambda.base.errors import ConfigError
from lowkiq_lambda.stack.scaffold.owned import own_version, stack_files

_FILES: Final = Path(__file__).parent / "files"
_SUFFIX: Final = ".txt"
"""So that neither a type checker nor a builder takes them for files of this package."""
_LOCAL: Final = """\
# Of this machine alone: lowkiq_lambda comes from here, and not from an index.
LOWKIQ_WHEEL := {wheel}
"""
_NEXT: Final = """\
{name}/ has {count} files. Next:
  cd {name}
  make test     set up .venv, and run the tests on a real Valkey
  make run      perform jobs on this machine, with a dashboard
  make cloud    deploy the stack to a cloud on this machine
"""

_FORM: Final = re.compile(r"[a-z][a-z0-9]*(?:[-_][a-z0-9]+)*")
_MOST: Final = 40
"""Letters: the longest name of a function or a role in the stack has some twenty more, and Lambda allows 64."""
_TAKEN: Final = {"app", "lowkiq", "lowkiq_lambda", "test", "tests", "web"}

_SERVICE: Final = """\
  web:
    build: *image
    command: uvicorn web:web --host 0.0.0.0 --port 8000
    environment: *settings
    ports: ["127.0.0.1:8000:8000"]
    depends_on:
      valkey: {condition: service_healthy}
"""


class _ProjectFile(Template):
    """Make and GitHub have their own dollars."""

    delimiter = "@@"


class Web(StrEnum):
    """The web app."""

    NONE = "none"
    FASTAPI = "fastapi"


def new_project(name: str, web: Web = Web.NONE, parent: Path | None = None) -> list[str]:
    """Write the project into a folder of that name; the paths of its files. Raises NameRefused, with nothing written.

    The folder comes below `parent`, by default the current one.
    """
    parent = parent or Path.cwd()
    check_name(name, parent)
    files = {**dict(_own_files(name, web)), **stack_files(), **dict(_machine_files())}
    with tempfile.TemporaryDirectory(dir=parent, prefix=f".{name}-") as folder:
        # In one step: an interrupted command leaves no half of a project.
        project = Path(folder) / name
        for path, text in files.items():
            (project / path).parent.mkdir(parents=True, exist_ok=True)
            (project / path).write_text(text, encoding="utf-8")
        project.rename(parent / name)
    return sorted(files)


def _own_files(name: str, web: Web) -> Iterator[tuple[str, str]]:
    values = {
        "name": name,
        "stack": name.replace("_", "-"),
        "version": own_version(),
        "series": ".".join(own_version().split(".")[:2]),
        **values_of(web),
    }
    for folder in ("project", f"web-{web}"):
        root = _FILES / folder
        for path in sorted(root.rglob(f"*{_SUFFIX}")):
            place = path.relative_to(root).as_posix().removesuffix(_SUFFIX).replace("dot-", ".")
            yield place, _rendered(path, values)


def _rendered(path: Path, values: Mapping[str, str]) -> str:
    return _ProjectFile(path.read_text(encoding="utf-8")).substitute(values)


def _machine_files() -> Iterator[tuple[str, str]]:
    if wheel := installed_from():
        yield "local.mk", _LOCAL.format(wheel=wheel)


def next_steps(name: str, files: list[str]) -> str:
    """What to type next, in lines for people."""
    return _NEXT.format(name=name, count=len(files))


class NameRefused(ConfigError):
    """A project cannot have this name."""


def check_name(name: str, parent: Path) -> None:
    """Raise NameRefused, in a sentence."""
    if keyword.iskeyword(name) or keyword.issoftkeyword(name):
        raise NameRefused(f"{name!r} is a keyword of Python: call the project otherwise.")
    if not _FORM.fullmatch(name):
        raise NameRefused(
            f"{name!r} cannot be the name of a project: it needs small letters, digits, and - or _ between them, and "
            "begins with a letter, such as shop or web-shop."
        )
    if len(name) > _MOST:
        raise NameRefused(f"{name!r} has {len(name)} letters, and the names of its functions have room for {_MOST}.")
    module = name.replace("-", "_")
    if module in _TAKEN:
        raise NameRefused(f"{name!r} is a name of the tools or in the project itself: call the project otherwise.")
    if module in sys.stdlib_module_names:
        raise NameRefused(f"{name!r} is a module of Python's own: call the project otherwise.")
    if (parent / name).exists():
        raise NameRefused(f"There is a {parent / name} already: take another name, or move it away.")


def installed_from() -> Path | None:
    """The wheel, or the folder with the source; None for an index, which other machines know too."""
    record = distribution("lowkiq-lambda").read_text("direct_url.json")
    url = urlsplit(json.loads(record)["url"]) if record else None
    return Path(url2pathname(url.path)) if url and url.scheme == "file" else None


def values_of(web: Web) -> Mapping[str, str]:
    """The values of the placeholders in the project's files, for this kind of web."""
    if web is Web.NONE:
        return {
            "extras": "aws,local",
            "run": "lowkiq run --dashboard $(PORT)",
            "port": "8080",
            "checked": "",
            "service": "",
        }
    return {
        "extras": "aws,fastapi,local",
        "run": "uvicorn web:web --port $(PORT)",
        "port": "8000",
        "checked": " web.py",
        "service": _SERVICE,
    }
