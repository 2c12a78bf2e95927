"""Parameters of a stack in a local cloud: those of samconfig.toml, and those of the command line."""

import shlex
import tomllib
from collections.abc import Callable, Iterable, Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Final

from lowkiq_lambda.base.errors import ConfigError
from lowkiq_lambda.stack.cloud.deployment import parameter_names

_SAMCONFIG: Final = "samconfig.toml"
_OF_THIS_MACHINE: Final = {"Runtime", "Architecture", "CodeUri", "RedisUrl"}
"""Parameters that the local cloud sets itself: samconfig.toml has those of AWS."""
_OF_AN_ACCOUNT: Final = ("arn:", "subnet-", "sg-")
"""Beginnings of the names of what is in an account, and not here."""
_LOCAL: Final = ":000000000000:"


def parameters_of(root: Path, template: Path, words: Iterable[str], say: Callable[[str], None]) -> dict[str, str]:
    """The parameters of the project's samconfig.toml, replaced by `words` as K=V. Raises ConfigError.

    Those of samconfig.toml that name something in an account are left out, and said. A RedisSecretArn stays: the
    local cloud keeps a secret of its own in its place.
    """
    typed = _pairs(words, "--parameter")
    written = _written(root / _SAMCONFIG)
    _check({**written, **typed}, template)
    absent = sorted(name for name, value in written.items() if name not in typed and _is_elsewhere(name, value))
    if absent:
        say(f"left out     {', '.join(absent)}: {_SAMCONFIG} names what is in an account of AWS")
    left_out = {*absent, *_OF_THIS_MACHINE}
    return {name: value for name, value in written.items() if name not in left_out} | typed


def _is_elsewhere(name: str, value: str) -> bool:
    return name.startswith("RedisIam") or (
        name != "RedisSecretArn" and value.startswith(_OF_AN_ACCOUNT) and _LOCAL not in value
    )


def is_foreign_secret(arn: str) -> bool:
    """Whether a secret is named that the local cloud does not have."""
    return bool(arn) and _LOCAL not in arn


def _written(path: Path) -> dict[str, str]:
    """What `sam deploy` would take: of its own table, or else of the one for all commands."""
    if not path.exists():
        return {}
    try:
        tables = tomllib.loads(path.read_text(encoding="utf-8")).get("default", {})
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path} cannot be read: {error}") from error
    for command in ("deploy", "global"):
        overrides = tables.get(command, {}).get("parameters", {}).get("parameter_overrides")
        if overrides is not None:
            return _pairs(shlex.split(overrides) if isinstance(overrides, str) else overrides, str(path))
    return {}


def _pairs(words: Iterable[str], source: str) -> dict[str, str]:
    pairs: dict[str, str] = {}
    for word in words:
        name, equals, value = word.partition("=")
        if not (name and equals):
            raise ConfigError(f"{source} has {word!r}: write a parameter as NAME=VALUE.")
        pairs[name] = value
    return pairs


def _check(parameters: Mapping[str, str], template: Path) -> None:
    names = parameter_names(template)
    for name in parameters:
        if name not in names:
            near = get_close_matches(name, names, 3)
            meant = f" Did you mean {' or '.join(near)}?" if near else ""
            raise ConfigError(f"{template} has no parameter {name}.{meant}")
