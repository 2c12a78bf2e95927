"""Contexts: which app, server and dashboard the commands of a project are about, such as `prod` and `staging`.

A context is a table of the project's pyproject.toml. It gives variables of the environment, for one command.
"""

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final

from lowkiq_lambda.base.errors import ConfigError
from lowkiq_lambda.settings.project import contexts_tables

CONTEXT: Final = "LOWKIQ_CONTEXT"
"""The variable that names the context of a command, if its words do not."""
REDIS_URL: Final = "LOWKIQ_REDIS_URL"
DASHBOARD_URL: Final = "LOWKIQ_DASHBOARD_URL"
_OPTION: Final = "--context"
_FIELDS: Final = {"app": "LOWKIQ_APP", "redis_url": REDIS_URL, "dashboard_url": DASHBOARD_URL}
_ENV: Final = "env"


@contextmanager
def in_context(words: Sequence[str]) -> Iterator[list[str]]:
    """The words of a command without `--context NAME`; in the block the environment is that of the context.

    Raises ConfigError for a context that there is not, or that cannot work.
    """
    name, rest = _split(words)
    name = name or os.environ.get(CONTEXT, "").strip()
    if not name:
        yield rest
        return
    variables = {**_variables(name), CONTEXT: name}
    before = {variable: os.environ.get(variable) for variable in variables}
    os.environ.update(variables)
    try:
        yield rest
    finally:
        for variable, value in before.items():
            if value is None:
                os.environ.pop(variable, None)
            else:
                os.environ[variable] = value


def _split(words: Sequence[str]) -> tuple[str, list[str]]:
    """The name behind the option, and the other words; what follows `--` is data."""
    end = words.index("--") if "--" in words else len(words)
    name, rest, position = "", list[str](), 0
    while position < end:
        word = words[position]
        if word == _OPTION:
            if position + 1 == end:
                raise ConfigError(f"{_OPTION} needs the name of a context.")
            name, position = words[position + 1], position + 2
        elif word.startswith(f"{_OPTION}="):
            name, position = word.partition("=")[2], position + 1
        else:
            rest.append(word)
            position += 1
    return name, [*rest, *words[end:]]


def _variables(name: str) -> Mapping[str, str]:
    tables = contexts_tables()
    if name not in tables:
        has = f"there are {', '.join(sorted(tables))}" if tables else "pyproject.toml has no [tool.lowkiq.contexts]"
        raise ConfigError(f"There is no context {name!r}: {has}.")
    table: dict[str, Any] = tables[name]
    where = f"[tool.lowkiq.contexts.{name}]"
    for field in table:
        if field not in _FIELDS and field != _ENV:
            raise ConfigError(f"{where} has no {field!r}; it has {', '.join((*_FIELDS, _ENV))}.")
    more = table.get(_ENV, {})
    if not isinstance(more, dict):
        raise ConfigError(f"{where} {_ENV} must be a table of variables.")
    variables = {**more, **{_FIELDS[field]: value for field, value in table.items() if field in _FIELDS}}
    for variable, value in variables.items():
        if not (isinstance(value, str) and value):
            raise ConfigError(f"{where} must give {variable} as a text.")
    return variables
