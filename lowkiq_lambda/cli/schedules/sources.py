"""Reads entries: those of an app, of a TOML file, or of a JSON file that `lowkiq schedules dump` wrote."""

import json
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeAlias

from lowkiq_lambda.app import Lowkiq
from lowkiq_lambda.base.errors import ConfigError, DeclarationError
from lowkiq_lambda.declare.worker import count_of
from lowkiq_lambda.schedules.entry import ScheduleEntry
from lowkiq_lambda.schedules.tick import problem_of
from lowkiq_lambda.schedules.toml_entries import path_text, read_toml, unreadable
from lowkiq_lambda.settings.config import Config
from lowkiq_lambda.settings.loading import load_app

_ENTRIES: Final = "entries"
_SHARDS: Final = "shards_count"
_YAML: Final = (".yaml", ".yml")

Problem: TypeAlias = Callable[[ScheduleEntry], str | None]
"""Why an entry cannot fire, in a sentence that names it, or None."""


class Source(NamedTuple):
    """Entries, how many shards their queues have where that is known, and what is wrong with an entry.

    A file is checked by the settings of an app that has none of its own: with payloads that are JSON.
    """

    entries: Sequence[ScheduleEntry]
    shards_count: Mapping[str, int]
    problem: Problem
    broken: Sequence[str] = ()
    """A sentence for each entry that the app reports and does not load."""


def read_source(name: str) -> Source:
    """The entries of MODULE:APP, of a .toml file or of a .json file, in the order of their declaration.

    Raises AppNotFound, ConfigError, DeclarationError.
    """
    if name.endswith(".toml"):
        return Source(read_toml(Path(name)), {}, _problem_in_file())
    if name.endswith(_YAML):
        raise ConfigError(
            f"{path_text(Path(name))} is YAML, which is not read: write a TOML file, a table for each entry."
        )
    return _read_json(Path(name)) if name.endswith(".json") else _of_app(name)


def read_checked(name: str) -> Source:
    """As `read_source`, and each entry can work. Raises DeclarationError for the first that cannot."""
    source = read_source(name)
    for problem in (*source.broken, *map(source.problem, source.entries)):
        if problem:
            raise DeclarationError(problem)
    return source


def dumped(source: Source) -> str:
    """The JSON that `read_source` reads. Raises ConfigError, which names the entry, where a payload is not JSON."""
    entries = [_as_json(entry) for entry in source.entries]
    return json.dumps({_SHARDS: source.shards_count, _ENTRIES: entries}, indent=2, ensure_ascii=False)


def _as_json(entry: ScheduleEntry) -> Mapping[str, Any]:
    fields = {"queue": entry.queue_name, "name": entry.name, **entry.definition()}
    try:
        json.dumps(fields)
    except (TypeError, ValueError, RecursionError) as error:
        raise ConfigError(f"{entry.label}: its payload cannot be written as JSON: {error}.") from error
    return fields


def _problem_in_file() -> Problem:
    return partial(problem_of, config=Config())


def _of_app(spec: str) -> Source:
    app = load_app(spec, Lowkiq)
    counts = {worker.queue_name: count_of(worker) for worker in app.workers}
    return Source(app.schedules.declared, counts, app.schedules.problem_of, [*map(str, app.schedules.broken)])


def _read_json(path: Path) -> Source:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        entries = [ScheduleEntry.from_definition(one["queue"], one["name"], one) for one in content[_ENTRIES]]
        return Source(entries, _whole_numbers(content.get(_SHARDS, {})), _problem_in_file())
    except (OSError, UnicodeError) as error:
        raise ConfigError(unreadable(path, error)) from error
    except DeclarationError as error:
        raise DeclarationError(f"{path_text(path)}: {error}") from None
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise ConfigError(f"{path_text(path)} is not what 'lowkiq schedules dump' writes.") from error


def _whole_numbers(counts: Mapping[str, Any]) -> Mapping[str, int]:
    return {name: count for name, count in counts.items() if isinstance(count, int) and count > 0}
