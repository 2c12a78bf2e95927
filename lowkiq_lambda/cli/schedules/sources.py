"""Reads entries: those of an app, of a TOML file, or of a JSON file that `lowkiq schedules dump` wrote."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from lowkiq_lambda.errors import ConfigError, DeclarationError
from lowkiq_lambda.loading import load_app
from lowkiq_lambda.schedules.entry import ScheduleEntry
from lowkiq_lambda.schedules.toml_entries import read_toml

_ENTRIES: Final = "entries"
_SHARDS: Final = "shards_count"


class Source(NamedTuple):
    """Entries, and how many shards their queues have where that is known."""

    entries: Sequence[ScheduleEntry]
    shards_count: Mapping[str, int]


def read_source(named: str) -> Source:
    """The entries of MODULE:APP, of a .toml file or of a .json file, in the order of their declaration.

    Raises AppNotFound, ConfigError, DeclarationError.
    """
    if named.endswith(".toml"):
        return Source(read_toml(Path(named)), {})
    return _read_json(Path(named)) if named.endswith(".json") else _of_app(named)


def read_checked(named: str) -> Source:
    """As `read_source`, and each entry can work. Raises DeclarationError for the first that cannot."""
    source = read_source(named)
    for entry in source.entries:
        entry.check()
    return source


def dumped(source: Source) -> str:
    """The JSON that `read_source` reads. Raises ConfigError where a payload is not JSON."""
    entries = [{"queue": entry.queue_name, "name": entry.name, **entry.definition()} for entry in source.entries]
    try:
        return json.dumps({_SHARDS: source.shards_count, _ENTRIES: entries}, indent=2, ensure_ascii=False)
    except (TypeError, ValueError) as error:
        raise ConfigError(f"The payload of an entry cannot be written as JSON: {error}.") from error


def _of_app(spec: str) -> Source:
    app = load_app(spec)
    return Source(app.schedules.declared, {worker.queue_name: worker.shards_count for worker in app.workers})


def _read_json(path: Path) -> Source:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        entries = [ScheduleEntry.from_definition(one["queue"], one["name"], one) for one in found[_ENTRIES]]
        return Source(entries, _whole_numbers(found.get(_SHARDS, {})))
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror}.") from error
    except DeclarationError as error:
        raise DeclarationError(f"{path}: {error}") from None
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ConfigError(f"{path} is not what 'lowkiq schedules dump' writes.") from error


def _whole_numbers(counts: Mapping[str, Any]) -> Mapping[str, int]:
    return {name: count for name, count in counts.items() if isinstance(count, int) and count > 0}
