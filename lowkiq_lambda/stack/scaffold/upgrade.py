"""Brings the stack's files of a project in step with the library, and leaves what somebody has edited."""

import re
from collections.abc import Iterator
from difflib import unified_diff
from enum import Enum
from pathlib import Path
from typing import Final, NamedTuple

from lowkiq_lambda.base.errors import ConfigError
from lowkiq_lambda.stack.scaffold.owned import FOLDER, TEMPLATE, own_version, signature, stack_files

NEW: Final = ".new"
_PYPROJECT: Final = "pyproject.toml"
_WRITTEN_BY: Final = re.compile(
    r'^(?P<before>\[tool\.lowkiq\]\n(?:[^\[\n][^\n]*\n|\n)*?version = ")(?P<version>[^"\n]+)"', re.MULTILINE
)


class Remedy(Enum):
    """What has to become of a file."""

    REPLACE = "replace"
    ADD = "add"
    REMOVE = "remove"
    MERGE = "merge"
    """By its people, as they have edited it."""


class FileChange(NamedTuple):
    """A file that is not as the library has it."""

    path: str
    remedy: Remedy
    text: str
    """That of the library."""
    diff: str = ""
    """From the file to that, for one to be merged."""


def changes(root: Path) -> list[FileChange]:
    """What is to be done in the project. Raises ConfigError if it has no stack, or that of a newer library."""
    if not (root / FOLDER / TEMPLATE).exists():
        raise ConfigError(f"{root} has no {FOLDER}/{TEMPLATE}: it is not a project that `lowkiq new` made.")
    _refuse_newer(root)
    files = stack_files()
    all_changes = [_change(root, path, text) for path, text in files.items()]
    return [*(change for change in all_changes if change), *_left_over(root, {*files})]


def apply(root: Path, change: FileChange) -> None:
    """Write what is to be written; beside the file, where people have to merge it."""
    path = root / change.path
    if change.remedy is Remedy.REMOVE:
        path.unlink()
        return
    if change.remedy is Remedy.MERGE:
        path = path.with_name(path.name + NEW)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(change.text, encoding="utf-8")


def note_version(root: Path) -> None:
    """Write into pyproject.toml which version of the library the files are of."""
    path = root / _PYPROJECT
    text = path.read_text(encoding="utf-8")
    noted = _WRITTEN_BY.sub(rf'\g<before>{own_version()}"', text)
    if noted != text:
        path.write_text(noted, encoding="utf-8")


def _change(root: Path, path: str, text: str) -> FileChange | None:
    file = root / path
    if not file.exists():
        return FileChange(path, Remedy.ADD, text)
    present = file.read_text(encoding="utf-8")
    if present == text:
        return None
    signed = signature(present)
    if signed and signed.is_untouched:
        return FileChange(path, Remedy.REPLACE, text)
    lines = unified_diff(present.splitlines(), text.splitlines(), path, path + NEW, lineterm="")
    return FileChange(path, Remedy.MERGE, text, "\n".join(lines))


def _left_over(root: Path, paths: set[str]) -> Iterator[FileChange]:
    """Files of an earlier library that this one does not have, unless somebody has edited them."""
    for file in sorted((root / FOLDER).rglob("*")):
        path = file.relative_to(root).as_posix()
        if file.is_file() and path not in paths and not path.endswith(NEW):
            signed = signature(file.read_text(encoding="utf-8", errors="replace"))
            if signed and signed.is_untouched:
                yield FileChange(path, Remedy.REMOVE, "")


def _refuse_newer(root: Path) -> None:
    match = _WRITTEN_BY.search((root / _PYPROJECT).read_text(encoding="utf-8"))
    if match and _numbers(match["version"]) > _numbers(own_version()):
        raise ConfigError(
            f"The project's files are of lowkiq_lambda {match['version']}, and {own_version()} is installed: install "
            "that version, or a newer one."
        )


def _numbers(version: str) -> list[int]:
    return [*map(int, re.findall(r"\d+", version)[:3])]
