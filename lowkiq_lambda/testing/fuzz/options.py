"""The options of a fuzz: from the call, from the worker's class, or from pyproject.toml; checked, with defaults."""

import inspect
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from pkgutil import resolve_name
from types import CodeType, FunctionType, ModuleType
from typing import Any, Final, TypedDict, cast

from lowkiq_lambda.base.errors import ConfigError
from lowkiq_lambda.declare.worker import LATEST, Worker
from lowkiq_lambda.settings.project import fuzz_table, fuzz_tables
from lowkiq_lambda.testing.fuzz.oracle import Effect
from lowkiq_lambda.testing.fuzz.plan import KINDS, FaultKind
from lowkiq_lambda.testing.fuzz.recording import PREFIX, RecordedPushes, recorded_of_project

SECONDS: Final = 10.0
_BY_NAME: Final = ("state", "reset", "isolate", "payloads", "effects")
"""Options that pyproject.toml has as MODULE:NAME; `isolate` may have several."""


class FuzzOptions(TypedDict, total=False):
    """What `lowkiq.fuzz` takes beside the worker; docs/fuzzing.md explains each.

    `state`: returns what has to be equal in the end, without times and tokens. `reset`: puts everything back before
    each scenario; `isolate`: objects that are put back without one. `payloads`: by default from the declared type; or
    what `recorded` reads from a file of `lowkiq record`.
    `effects`: what the handler does outside. `outside`: doubles of the outside world, in which no process dies.
    `watch`: functions, engines and clients before and after whose calls processes die too.

    `versions`: pushes have scores. `merges`: equal payloads of an id are pushed. `duplicates`: pushes come twice.
    `faults`: the kinds of faults. `ids`: how many ids. `seconds`, `scenarios`: when the fuzz ends. `seed`: of the
    random scenarios. `plan`: this scenario alone. `fork`: each drain is a child that is really killed.
    """

    state: Callable[[], Any] | None
    reset: Callable[[], object] | None
    isolate: object
    payloads: Iterable[Any] | RecordedPushes | None
    effects: Mapping[str, Effect]
    outside: Sequence[Callable[..., Any] | str]
    watch: Sequence[Any]
    versions: bool
    merges: bool
    duplicates: bool
    faults: Collection[FaultKind]
    ids: int
    seconds: float
    scenarios: int | None
    seed: int
    plan: str | None
    fork: bool


DEFAULTS: Final = FuzzOptions(
    state=None,
    reset=None,
    isolate=None,
    payloads=None,
    effects={},
    outside=(),
    watch=(),
    versions=True,
    merges=True,
    duplicates=False,
    faults=KINDS,
    ids=3,
    seconds=SECONDS,
    scenarios=None,
    seed=0,
    plan=None,
    fork=False,
)


def all_options(worker: type[Worker[Any]], options: FuzzOptions) -> FuzzOptions:
    """The options of the call over those of the worker's `fuzz()`, over those of pyproject.toml, over the defaults.

    Raises ConfigError.
    """
    sources = {**_of_project(worker), **_of_worker(worker), **options}
    for name in sources:
        if name not in DEFAULTS:
            raise ConfigError(f"A fuzz has no option {name!r}; it has {', '.join(DEFAULTS)}.")
    merged = cast("FuzzOptions", {**DEFAULTS, **sources})
    if strange := [*{*merged["faults"]} - {*KINDS}]:
        raise ConfigError(f"There is no fault {strange[0]!r}; there are {', '.join(KINDS)}.")
    if not 1 <= merged["ids"] <= 10:  # noqa: PLR2004 - more find nothing that these do not
        raise ConfigError("ids= is a number from 1 to 10.")
    if worker.merge == LATEST and not merged["versions"]:
        raise ConfigError(
            f'versions = false: {worker.__name__} has merge = "latest", so each of its pushes needs a version. '
            "Leave that option out."
        )
    return merged


def _of_worker(worker: type[Worker[Any]]) -> Mapping[str, Any]:
    method = getattr(worker, "fuzz", None)
    if method is None:
        return {}
    is_plain = isinstance(inspect.getattr_static(worker, "fuzz"), FunctionType)
    options = method(worker()) if is_plain else method()
    if not isinstance(options, Mapping):
        raise ConfigError(f"{worker.__name__}.fuzz() returns a dict of options, not {options!r}.")
    return options


def _of_project(worker: type[Worker[Any]]) -> Mapping[str, Any]:
    table = fuzz_table(worker.__name__) or fuzz_table(worker.queue_name)
    if not table:
        _check_names(worker)
    return {name: _resolved(name, value) if name in _BY_NAME else value for name, value in table.items()}


def _check_names(worker: type[Worker[Any]]) -> None:
    """A name of no worker that is nearly this one's would leave the fuzz without its options."""
    workers = worker.app.workers if worker.app is not None else ()
    names = {name for each in workers for name in (each.__name__, each.queue_name)}
    if close := get_close_matches(worker.__name__, sorted(fuzz_tables().keys() - names), 1, cutoff=0.8):
        raise ConfigError(f"[tool.lowkiq.fuzz.{close[0]}] is of no worker: the name of this one is {worker.__name__}.")


def _resolved(option: str, name: object) -> Any:  # noqa: ANN401 - whatever the name stands for
    if isinstance(name, list):
        return tuple(_resolved(option, one) for one in name)
    if option == "payloads" and str(name).startswith(PREFIX):
        return recorded_of_project(str(name))
    try:
        return resolve_name(str(name))
    except (ImportError, AttributeError, ValueError) as error:
        raise ConfigError(f"[tool.lowkiq.fuzz] {option}: {name!r} cannot be imported: {error}.") from error


def codes_of(outside: Sequence[Callable[..., Any] | str]) -> Iterator[CodeType]:
    """The code of functions, and of all functions of classes and modules; a text is the name of any of these.

    Code of installed packages is outside without being named. Raises ConfigError.
    """
    for one in outside:
        value = _resolved_outside(one) if isinstance(one, str) else one
        yield from _codes(value)


def _resolved_outside(name: str) -> object:
    try:
        return resolve_name(name)
    except (ImportError, AttributeError, ValueError) as error:
        raise ConfigError(f"outside=: {name!r} cannot be imported: {error}.") from error


def _codes(value: object) -> Iterator[CodeType]:
    function = inspect.unwrap(value) if callable(value) else value
    function = getattr(function, "__func__", function)
    if isinstance(function, FunctionType):
        yield function.__code__
    elif isinstance(value, ModuleType | type):
        for member in [*vars(value).values()]:
            inner = getattr(member, "__func__", member)
            if isinstance(inner, FunctionType) and inner.__module__ == getattr(value, "__module__", value.__name__):
                yield inner.__code__
    elif callable(value):
        yield from _codes(getattr(type(value), "__call__"))  # noqa: B004, B009 - an object that is called
