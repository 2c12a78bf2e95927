"""Entries that a TOML file declares: a table each, its name the entry's."""

import math
import tomllib
from collections.abc import Callable, Mapping
from datetime import date, datetime, time
from pathlib import Path
from typing import Any, Final

from msgspec import UNSET

from lowkiq_lambda.base.error_text import SHOWN, cut, shown
from lowkiq_lambda.base.errors import DeclarationError
from lowkiq_lambda.schedules.entry import OPTIONS, ScheduleEntry, new_entry
from lowkiq_lambda.schedules.times import Times, parse_at, parse_cron, parse_every

_KINDS: Final = ("cron", "every", "at")
_KEYS: Final = (*_KINDS, "offset", "tz", "worker", "id", *OPTIONS)
_STRING: Final = ((str,), "a string")
_SECONDS: Final = ((int, float), "a number of seconds")
_VALUES: Final[Mapping[str, tuple[tuple[type, ...], str]]] = {
    "cron": _STRING,
    "every": _SECONDS,
    "at": ((datetime,), "a date-time with its offset, such as 2026-12-31T23:00:00Z"),
    "offset": _SECONDS,
    "tz": _STRING,
    "worker": ((str,), "a string, the name of the queue"),
    "id": ((str, int), "a string or an integer"),
    "missed": _STRING,
    "grace": _SECONDS,
    "overlap": _STRING,
    "jitter": _SECONDS,
    "expires_in": _SECONDS,
    "enabled": ((bool,), "true or false"),
    "description": _STRING,
}
_NAMES: Final[Mapping[type, str]] = {
    str: "a string",
    bool: "a boolean",
    int: "an integer",
    float: "a float",
    list: "an array",
    dict: "a table",
    datetime: "a date-time without an offset",
    date: "a date",
    time: "a time",
}
"""What TOML calls the values of these types."""


def _raise(_queue_name: object, _name: str, error: DeclarationError) -> None:
    raise error


def read_toml(path: Path, refuse: Callable[[object, str, DeclarationError], None] = _raise) -> list[ScheduleEntry]:
    """The entries of the file, in its order; `worker` is the name of the queue.

    `refuse` gets queue, name and error of one that cannot work, and raises the error if it is left out; that names the
    file, the table and the key. Raises DeclarationError if the file cannot be read.
    """
    try:
        tables = tomllib.loads(path.read_text(encoding="utf-8"))
    # A whole number of thousands of digits is a mere ValueError of the parser.
    except (OSError, ValueError, RecursionError) as error:
        raise DeclarationError(unreadable(path, error)) from error
    entries = []
    for name, table in tables.items():
        try:
            entries.append(_entry(name, table))
        except DeclarationError as error:
            queue_name = table.get("worker", "") if isinstance(table, dict) else ""
            refuse(queue_name, name, DeclarationError(f"{path_text(path)}: {error}"))
    return entries


def unreadable(path: Path, error: Exception) -> str:
    """The sentence for a file that cannot be read, with the folder that a relative path was looked for in."""
    reason = cut(error.strerror or "" if isinstance(error, OSError) else str(error), SHOWN)
    folder = "" if path.is_absolute() or not isinstance(error, FileNotFoundError) else f" in {path_text(Path.cwd())}"
    return f"{path_text(path)} cannot be read: {reason}{folder}."


def path_text(path: Path) -> str:
    """A path as text, also where its name is none."""
    return str(path).encode(errors="backslashreplace").decode()


def _entry(name: str, table: object) -> ScheduleEntry:
    if not isinstance(table, dict):
        raise DeclarationError(f"{shown(name)} is not a table: an entry begins with [{name}].")
    where = f"Entry {shown(name)}"
    if unknown := next((key for key in table if key not in _KEYS), None):
        raise DeclarationError(f"{where}: {shown(unknown)} is not a key of an entry: there are {', '.join(_KEYS)}.")
    if missing := next((key for key in ("worker", "id") if key not in table), None):
        raise DeclarationError(f"{where}: {missing} is missing.")
    try:
        _check_kinds(table)
        for key, value in table.items():
            _check_value(key, value)
        times = _times(table)
    except DeclarationError as error:
        raise DeclarationError(f"{where}: {error}") from None
    return new_entry(
        table["worker"], times, id=table["id"], name=name, **{key: table[key] for key in OPTIONS if key in table}
    )


def _check_value(key: str, value: object) -> None:
    if key not in _VALUES:
        return
    types, description = _VALUES[key]
    if isinstance(value, float) and not math.isfinite(value):
        raise DeclarationError(f"{key} must be {description}, not {value}.")
    if (
        not isinstance(value, types)
        or (isinstance(value, bool) and bool not in types)
        or (isinstance(value, datetime) and not value.tzinfo)
    ):
        raise DeclarationError(f"{key} must be {description}, not {_NAMES[type(value)]}.")


def _check_kinds(table: Mapping[str, Any]) -> None:
    kinds = [kind for kind in _KINDS if kind in table]
    if len(kinds) != 1:
        raise DeclarationError(f"it must have one of {', '.join(_KINDS)}; it has {' and '.join(kinds) or 'none'}.")
    if "offset" in table and "every" not in table:
        raise DeclarationError("offset goes with every alone.")


def _times(table: Mapping[str, Any]) -> Times:
    if "cron" in table:
        return parse_cron(table["cron"], table.get("tz", UNSET))
    tz = table.get("tz", "UTC")
    if "every" in table:
        return parse_every(table["every"], table.get("offset", 0.0), tz)
    return parse_at(table["at"], tz)
