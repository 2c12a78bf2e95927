"""What AWS would refuse in the middle of a deploy, told before it: by the build, from `samconfig.toml`.

CloudFormation's own rules know neither the length of a stack's name nor that of several parameters together.
"""

import re
import shlex
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from lowkiq_lambda.stack.packaging.targets import BuildFailed

NAME: Final = "samconfig.toml"
FUNCTION_NAME: Final = 64
"""Letters of a function's name, as Lambda takes it."""
ENVIRONMENT: Final = 4_096
"""Bytes of a function's variables, names and values, as Lambda takes them."""

_SUFFIX: Final = re.compile(r"FunctionName: !Sub \$\{AWS::StackName\}([\w-]+)")
_VARIABLES: Final = re.compile(r"^( +)Variables:\n((?:\1 +.*\n|\n)+)", re.MULTILINE)
_VARIABLE: Final = re.compile(r"^ +([A-Z][A-Z0-9_]+): (.*\n(?: +(?:- |!).*\n)*)", re.MULTILINE)
_NAMED: Final = re.compile(r"!Ref (\w+)|\$\{(\w+)\}")
_PARAMETER: Final = re.compile(r"^  (\w+):\n(?:    .*\n)*?    Default: (.*)$", re.MULTILINE)


def check_deploys(template: Path) -> None:
    """Raises BuildFailed where a deploy by the file beside the template, or above its folder, cannot become a stack."""
    text = template.read_text(encoding="utf-8")
    for path in (template.parent / NAME, template.parent.parent / NAME):
        if path.exists():
            for place, stack, parameters in _deploys(path):
                _check_name(place, stack, text)
                _check_environment(place, parameters, text)
            return


def _deploys(path: Path) -> Iterator[tuple[str, str, dict[str, str]]]:
    """Of each environment of the file: where it stands, the stack's name, and its parameters."""
    config = tomllib.loads(path.read_text(encoding="utf-8"))
    for name, commands in config.items():
        if isinstance(commands, dict):
            tables = [commands.get(each, {}).get("parameters", {}) for each in ("global", "deploy")]
            settings: dict[str, Any] = {**tables[0], **tables[1]}
            yield f"{path}, [{name}]", str(settings.get("stack_name", "")), _parameters(settings)


def _parameters(settings: Mapping[str, Any]) -> dict[str, str]:
    overrides = settings.get("parameter_overrides", "")
    words = overrides if isinstance(overrides, list) else shlex.split(str(overrides))
    pairs = (str(word).partition("=") for word in words)
    return {name: value for name, _, value in pairs}


def _check_name(place: str, stack: str, text: str) -> None:
    longest = max(_SUFFIX.findall(text), key=len, default="")
    most = FUNCTION_NAME - len(longest)
    if len(stack) > most:
        raise BuildFailed(
            f"{place}: stack_name has {len(stack)} letters, and its function {stack}{longest} would have more than "
            f"Lambda takes: choose a name of at most {most}."
        )


def _check_environment(place: str, parameters: dict[str, str], text: str) -> None:
    values = {name: default.strip('"') for name, default in _PARAMETER.findall(text)} | parameters
    everywhere, *own = [_bytes(block, values) for _, block in _VARIABLES.findall(text)]
    size = everywhere + max(own, default=0)
    if size > ENVIRONMENT:
        longest = max(parameters, key=lambda name: len(parameters[name]))
        raise BuildFailed(
            f"{place}: with these parameters a function's variables have some {size:,} bytes, and Lambda takes "
            f"{ENVIRONMENT:,}: shorten {longest}, which has {len(parameters[longest]):,}."
        )


def _bytes(block: str, values: Mapping[str, str]) -> int:
    """Of the variables of a block: those that take one of several values count with all of them."""
    parts = [(name, {one or other for one, other in _NAMED.findall(text)}) for name, text in _VARIABLE.findall(block)]
    return sum(len(name) + sum(len(values.get(one, "").encode()) for one in of) for name, of in parts)
