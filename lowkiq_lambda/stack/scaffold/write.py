"""Writes a new project: the files for people to change, and those of the stack."""

import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from string import Template
from typing import Final

from lowkiq_lambda.stack.scaffold.names import check_name
from lowkiq_lambda.stack.scaffold.origin import installed_from
from lowkiq_lambda.stack.scaffold.owned import own_version
from lowkiq_lambda.stack.scaffold.stack import stack_files
from lowkiq_lambda.stack.scaffold.variants import Web, values_of

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


class _ProjectFile(Template):
    """Make and GitHub have their own dollars."""

    delimiter = "@@"


def new_project(name: str, web: Web = Web.NONE, parent: Path | None = None) -> list[str]:
    """Write the project into a folder of that name; the paths of its files. Raises NameRefused, with nothing written.

    The folder comes below `parent`, by default the current one.
    """
    parent = parent or Path.cwd()
    check_name(name, parent)
    files = {**dict(_own_files(name, web)), **stack_files(), **dict(_machine_files())}
    with tempfile.TemporaryDirectory(dir=parent, prefix=f".{name}-") as folder:
        # In one step: whoever is interrupted has no half of a project.
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
