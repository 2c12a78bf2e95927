"""The page of settings, made of the classes that read them."""

import re
from collections.abc import Collection, Iterator, Mapping
from typing import Final

import msgspec

from lint.reference.sources import field_docs
from lint.reference.tables import code, table
from lowkiq_lambda.dashboard.security.settings import DashboardSettings
from lowkiq_lambda.settings.aws import RedisIam, Settings
from lowkiq_lambda.settings.config import Config, EnvSettings, variable_of
from lowkiq_lambda.settings.expected import expected
from lowkiq_lambda.settings.protocols import Buffer, MorgueLimits

_INTRODUCTION: Final = """\
# Settings

A setting is a field of `Config` in code, or an environment variable: `LOWKIQ_` and its name in capitals. Code wins over
the environment, and an empty variable counts as unset. Times are seconds, sizes are bytes. All settings are checked at
the start; an error names the setting and the value. [redis](../redis.md) says more about the server and the errors.
"""
_APP: Final = """\
## Of an app

The daemon, the functions and each process that pushes read these. `REDIS_URL` serves for the URL where
`LOWKIQ_REDIS_URL` is not set. `LOWKIQ_ENV` is read as well: `production` refuses the embedded server, and `development`
allows it in a container.
"""
_CODE: Final = """\
## In code only

These are fields of `Config` that no variable can give.
"""
_OF_LOWKIQ: Final = """\
## Of Lowkiq

These have the names and the meanings that they have in Lowkiq. Those without a variable are fields of `Config` alone.
"""
LOWKIQ: Final = (
    "redis",
    "client_pool_size",
    "pool_timeout",
    "poll_interval",
    "threads_per_node",
    "number_of_nodes",
    "node_number",
    "on_server_init",
    "last_words",
    "build_scheduler",
    "build_splitter",
    "dump_payload",
    "load_payload",
    "format_error",
    "dump_error",
    "load_error",
)
"""The settings of Lowkiq, which stand in a group of their own."""
_FUNCTIONS: Final = """\
## Of the functions on Lambda

The [template](template.md) sets these for its functions.
"""
_PARTS: Final = """\
## Values with parts

In code these are objects. A variable takes `name=value` of some parts, with commas between, as in
`LOWKIQ_MORGUE=entries=5000,bytes=33554432`; the other parts have their defaults. It gives no functions.
"""
_WITH_PARTS: Final[Mapping[str, type[msgspec.Struct]]] = {
    "when_unavailable": Buffer,
    "morgue": MorgueLimits,
    "redis_iam": RedisIam,
}
_DASHBOARD: Final = """\
## Of the dashboard

[dashboard](../dashboard.md) tells how people and programs sign in.
"""
_HEAD: Final = ("setting", "variable", "default", "meaning")
_ANY: Final = "a text"
_KIBIBYTE: Final = 1024
_DAY: Final = 86_400


def page() -> str:
    """The text of the page."""
    in_code = [name for name in Config.__struct_fields__ if name not in Config.kinds()]
    parts = [
        _INTRODUCTION,
        _APP,
        table(_HEAD, _rows(Config, [*in_code, *LOWKIQ])),
        _CODE,
        table(("setting", "meaning"), _code_rows([name for name in in_code if name not in LOWKIQ])),
        _OF_LOWKIQ,
        table(_HEAD, _lowkiq_rows()),
        _FUNCTIONS,
        table(_HEAD, _rows(Settings, Config.__struct_fields__)),
        _DASHBOARD,
        table(_HEAD, _rows(DashboardSettings, ())),
        _PARTS,
        table(("setting", "object", "part", "default", "meaning"), _part_rows()),
    ]
    return "\n".join(part if part.endswith("\n") else f"{part}\n" for part in parts)


def _rows(settings: type[EnvSettings], left_out: Collection[str]) -> Iterator[list[str]]:
    docs = field_docs(settings)
    for field in msgspec.structs.fields(settings):
        if field.name not in left_out:
            yield [
                code(field.name),
                code(variable_of(field.name)),
                default(field.name, field.default),
                f"{docs[field.name]}{_values(expected(settings.kinds()[field.name]))}",
            ]


def _lowkiq_rows() -> Iterator[list[str]]:
    rows = {
        row[0]: row for row in _rows(Config, [name for name in Config.__struct_fields__ if name not in Config.kinds()])
    }
    in_code = {code(name): [code(name), "", "", meaning] for name, meaning in field_docs(Config).items()}
    yield from ((in_code | rows)[code(name)] for name in LOWKIQ)


def _code_rows(names: list[str]) -> Iterator[list[str]]:
    docs = field_docs(Config)
    for name in names:
        yield [code(name), docs[name]]


def _part_rows() -> Iterator[list[str]]:
    for setting, kind in _WITH_PARTS.items():
        docs = field_docs(kind)
        for part in msgspec.structs.fields(kind):
            value = "" if part.required or callable(part.default) else default(part.name, part.default)
            yield [code(setting), code(kind.__name__), code(part.name), value, docs[part.name]]


def default(name: str, value: object) -> str:
    """The default as people write it; nothing for none."""
    if value is None or value == "":
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int) and name.endswith("bytes"):
        return _size(value)
    if isinstance(value, float) and value >= _DAY and value % _DAY == 0:
        return f"{value / _DAY:g} days"
    if isinstance(value, msgspec.Struct):
        return code(",".join(f"{part}={number:.15g}" for part, number in msgspec.structs.asdict(value).items()))
    return f"{value:,.15g}" if isinstance(value, int | float) else code(str(value))


def _values(text: str) -> str:
    """A sentence on what it may be, long numbers in groups of three digits; none for any text."""
    return "" if text == _ANY else f" Takes {re.sub(r'[0-9]{5,}', lambda found: f'{int(found[0]):,}', text)}."


def _size(count: int) -> str:
    return f"{count // _KIBIBYTE**2:,} MiB" if count >= _KIBIBYTE**2 else f"{count // _KIBIBYTE:,} KiB"
