"""The stack in somebody's project: which files it has there, what is in them, and which version it is."""

import re
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Final

from lowkiq_lambda.stack.scaffold.owned import sign
from lowkiq_lambda.stack.scaffold.source import stack_folder

FOLDER: Final = "lowkiq"
"""Of the stack, in the project."""
TEMPLATE: Final = "template.yaml"

# In the checkout the folder of the app lies beside the template, and in a project beside the template's folder.
_CODE: Final = re.compile(r"^(?P<key> +(?:CodeUri|Default): )app/$", re.MULTILINE)
_VERSION: Final = re.compile(r'^ +LOWKIQ_STACK_VERSION: "?(?P<version>\d+)"?$', re.MULTILINE)


def stack_files() -> dict[str, str]:
    """The text of each file, by its path in the project."""
    source = stack_folder()
    files = {}
    for path in _paths(source):
        text = path.read_text(encoding="utf-8")
        name = PurePosixPath(path.relative_to(source).as_posix())
        files[str(FOLDER / name)] = sign(_CODE.sub(r"\g<key>../app/", text))
    return files


def stack_version(template: Path) -> int | None:
    """The version that a template says that it is of; None for one that says nothing, as a template of yours."""
    found = _VERSION.search(template.read_text(encoding="utf-8"))
    return int(found["version"]) if found else None


def outdated(template: Path) -> str | None:
    """A sentence, where the template is of an older stack than the library's own."""
    version, needed = stack_version(template), stack_version(stack_folder() / TEMPLATE)
    if version is None or needed is None or version >= needed:
        return None
    return (
        f"{template} is of stack version {version}, and this lowkiq_lambda needs {needed}: run `lowkiq upgrade` in the "
        "project's folder."
    )


def _paths(source: Path) -> Iterator[Path]:
    yield source / TEMPLATE
    yield from sorted((source / "infra").glob("*.yaml"))
    yield from sorted((source / "infra" / "package").glob("*/Makefile"))
