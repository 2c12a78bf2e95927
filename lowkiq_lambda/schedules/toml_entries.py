"""Entries that a TOML file declares: a table each, its name the entry's."""

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from lowkiq_lambda.errors import DeclarationError
from lowkiq_lambda.schedules.entry import ScheduleEntry, new_entry
from lowkiq_lambda.schedules.times import Times, parse_at, parse_cron, parse_every

_KINDS: Final = ("cron", "every", "at")
_OPTIONS: Final = ("payload", "missed", "grace", "overlap", "jitter", "description")
_KEYS: Final = (*_KINDS, "offset", "tz", "worker", "id", *_OPTIONS)


def read_toml(path: Path) -> list[ScheduleEntry]:
    """The entries of the file, in its order; `worker` is the name of the queue.

    Raises DeclarationError, which names the file, the table and the key.
    """
    try:
        tables = tomllib.loads(path.read_text(encoding="utf-8"))
        return [_entry(name, table) for name, table in tables.items()]
    except DeclarationError as error:
        raise DeclarationError(f"{path}: {error}") from None
    # A whole number of thousands of digits is a mere ValueError of the parser.
    except (OSError, ValueError, RecursionError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise DeclarationError(f"{path} cannot be read: {reason}.") from error


def _entry(name: str, table: object) -> ScheduleEntry:
    if not isinstance(table, dict):
        raise DeclarationError(f"{name!r} is not a table: an entry begins with [{name}].")
    where = f"Entry {name!r}"
    if unknown := next((key for key in table if key not in _KEYS), None):
        raise DeclarationError(f"{where}: {unknown!r} is not a key of an entry: there are {', '.join(_KEYS)}.")
    if missing := next((key for key in ("worker", "id") if key not in table), None):
        raise DeclarationError(f"{where}: {missing} is missing.")
    try:
        times = _times(table)
    except DeclarationError as error:
        raise DeclarationError(f"{where}: {error}") from None
    return new_entry(
        table["worker"], times, id=table["id"], name=name, **{key: table[key] for key in _OPTIONS if key in table}
    )


def _times(table: Mapping[str, Any]) -> Times:
    kinds = [kind for kind in _KINDS if kind in table]
    if len(kinds) != 1:
        raise DeclarationError(f"it must have one of {', '.join(_KINDS)}; it has {' and '.join(kinds) or 'none'}.")
    if "offset" in table and "every" not in table:
        raise DeclarationError("offset goes with every alone.")
    tz = table.get("tz", "UTC")
    if "cron" in table:
        return parse_cron(table["cron"], tz)
    if "every" in table:
        return parse_every(table["every"], table.get("offset", 0.0), tz)
    return parse_at(table["at"], tz)
