"""The versions of a stack's functions, and the alias that says which of them runs."""

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from operator import attrgetter
from typing import Any, Final

from lowkiq_lambda.aws.drain_schedules.deployed import DeployError, client, said

ALIAS: Final = "live"
"""Of the template, which its parameter of that name lets everything start."""
_PAGE: Final = "runbooks/rollback.md"
_OUTPUTS: Final = ("DrainFunctionName", "IngestFunctionName", "DashboardFunctionName")
_TAKEN_BACK: Final = "Taken back: "
"""In the description of an alias, before the numbers of versions; a deploy leaves it as it is."""
_MOST_TAKEN_BACK: Final = 20
_CHANGED: Final = "PreconditionFailedException"


@dataclass(frozen=True, kw_only=True)
class Version:
    """A published version: its number, when it was published, and the `Release` that the stack had then."""

    number: int
    published_at: str
    release: str


@dataclass(frozen=True, kw_only=True)
class AliasMove:
    """A function, the version that its alias starts, and the one that it shall start."""

    function: str
    runs: Version
    then: Version
    description: str
    """Of the alias behind the move: the versions that were taken back."""
    revision: str
    """Of the alias, as it was read."""


def plan_rollback(stack: str, to: Mapping[str, int] | None = None) -> list[AliasMove]:
    """For each function of the stack the move to the version before, or to the version `to`. Raises DeployError.

    The version before is that before the newest `Release` that runs, without those that were taken back. A function
    that runs an older one stays: a deploy did not change it, or a rollback that broke off has moved it. So does one
    that has no version before; one at least moves. `to`: versions by functions, whose names may be without the stack's;
    of all others under "".
    """
    api, functions = client("lambda"), _functions(stack)
    by_name = {name.removeprefix(f"{stack}-"): version for name, version in (to or {}).items()}
    names = {function.removeprefix(f"{stack}-"): function for function in functions}
    if unknown := by_name.keys() - names.keys() - {""}:
        raise DeployError(f"Stack {stack!r} has no function {min(unknown)!r}: expected one of {', '.join(names)}.")
    versions = {function: by_name.get(name, by_name.get("")) for name, function in names.items()}
    moves = [_move(api, function, version) for function, version in versions.items() if version is not None or not to]
    changes = [move for move in moves if move.then != move.runs]
    if to:
        return changes
    if not changes:
        raise DeployError(f"Stack {stack!r} has one version of each function: there is none to go back to.")
    newest = max((move.runs for move in changes), key=attrgetter("published_at"))
    return [move for move in changes if move.runs.release == newest.release]


def move(move: AliasMove) -> None:
    """Let the alias start the version. Raises DeployError, also where somebody has moved it meanwhile."""
    api = client("lambda")
    with _said(f"The alias of {move.function!r} could not be moved"):
        try:
            api.update_alias(
                FunctionName=move.function,
                Name=ALIAS,
                FunctionVersion=str(move.then.number),
                RoutingConfig={"AdditionalVersionWeights": {}},
                Description=move.description,
                RevisionId=move.revision,
            )
        except api.exceptions.ClientError as error:
            if error.response["Error"]["Code"] != _CHANGED:
                raise
            raise DeployError(
                f"Somebody else has moved the alias of {move.function!r} meanwhile: look again."
            ) from error


def _functions(stack: str) -> Sequence[str]:
    with _said(f"The stack {stack!r} could not be read"):
        (described,) = client("cloudformation").describe_stacks(StackName=stack)["Stacks"]
    parameters = {each["ParameterKey"]: each.get("ParameterValue") for each in described.get("Parameters", ())}
    outputs = {each["OutputKey"]: each["OutputValue"] for each in described.get("Outputs", ())}
    functions = [outputs[name] for name in _OUTPUTS if name in outputs]
    if not functions:
        raise DeployError(f"Stack {stack!r} has none of the outputs {', '.join(_OUTPUTS)}: it is of another template.")
    # The stack of the CDK construct has no parameters; its alias is there, or not.
    if parameters.get("Alias", ALIAS) != ALIAS:
        raise DeployError(
            f"Stack {stack!r} starts the latest code of its functions, so a version cannot be taken back: deploy it "
            f"with Alias={ALIAS}. Until then a rollback is a deploy of the code before."
        )
    return functions


def _move(api: Any, function: str, to: int | None) -> AliasMove:  # noqa: ANN401 - boto3 makes its clients' classes at run time
    with _said(f"The versions of {function!r} could not be read"):
        try:
            alias = api.get_alias(FunctionName=function, Name=ALIAS)
        except api.exceptions.ResourceNotFoundException as error:
            raise DeployError(f"{function!r} has no alias {ALIAS!r}: deploy its stack again.") from error
        pages = api.get_paginator("list_versions_by_function").paginate(FunctionName=function)
        versions = dict(_versions(version for page in pages for version in page["Versions"]))
    current = alias["FunctionVersion"]
    runs = versions.get(int(current)) if current.isdigit() else None
    if runs is None:
        raise DeployError(f"Version {current} of {function!r}, which the alias starts, is not among those published.")
    numbers = sorted(versions)
    if to is not None and to not in versions:
        raise DeployError(f"{function!r} has no version {to}: expected one of {', '.join(map(str, numbers))}.")
    taken_back = {*map(int, re.findall(r"\d+", alias.get("Description", "").partition(_TAKEN_BACK)[2]))}
    before = [number for number in numbers if number < runs.number and number not in taken_back]
    then = max(before, default=runs.number) if to is None else to
    taken_back |= {number for number in numbers if then < number <= runs.number}
    newest = sorted(taken_back - {then})[-_MOST_TAKEN_BACK:]
    return AliasMove(
        function=function,
        runs=runs,
        then=versions[then],
        description=f"{_TAKEN_BACK}{', '.join(map(str, newest))}" if newest else "",
        revision=alias["RevisionId"],
    )


def _versions(answers: Iterator[Any]) -> Iterator[tuple[int, Version]]:
    for answer in answers:
        if answer["Version"].isdigit():
            number = int(answer["Version"])
            release = answer.get("Environment", {}).get("Variables", {}).get("LOWKIQ_RELEASE", "")
            yield number, Version(number=number, published_at=answer["LastModified"], release=release)


@contextmanager
def _said(failure: str) -> Iterator[None]:
    with said(failure, _PAGE):
        yield
