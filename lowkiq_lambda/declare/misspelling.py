"""Finds misspelt options of workers, and misspelt settings: they would silently have no effect."""

from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from typing import Final

from lowkiq_lambda.base.errors import DeclarationError
from lowkiq_lambda.jobs.debounce import Debounce
from lowkiq_lambda.jobs.rate import Rate
from lowkiq_lambda.settings.config import EnvSettings, variable_of

_OPTIONS: Final[Mapping[str, type]] = {
    "shards_count": int,
    "batch_size": int,
    "max_retry_count": int,
    "queue_name": str,
    "merge": str,
    "isolate": bool,
    "ordered": bool,
    "payloads_at_once": int,
    "turn": float,
    "cursor_version": int,
    "debounce": Debounce,
    "keep_runs": int,
    "max_running": int,
    "max_waiting": int,
    "rate": Rate,
    "waits_for": tuple,
    "block_except": tuple,
    "weight": float,
    "tenants": str,
    "tenant_rate": Rate,
}
_OF_OTHER_LIBRARIES: Final = {
    "autoretry_for": "max_retry_count",
    "batchSize": "batch_size",
    "default_retry_delay": "retry_in",
    "max_retries": "max_retry_count",
    "rate_limit": "rate",
    "retries": "max_retry_count",
    "retry_backoff": "retry_in",
    "retry_delay": "retry_in",
}
"""Names of these options in other libraries."""
_OTHER_VARIABLES: Final = (
    "LOWKIQ_ENV",
    "LOWKIQ_ALERT_URL",
    "LOWKIQ_BUILD_PYTHON",
    "LOWKIQ_CONTEXT",
    "LOWKIQ_DASHBOARD_URL",
    "LOWKIQ_OPERATOR",
    "LOWKIQ_TEST_REDIS_URL",
)
"""Variables that are not a setting of an app, a function or a dashboard."""
_SIMILAR: Final = 0.85
"""The least similarity of two names at which one counts as a misspelling of the other."""


def refuse_misspelt(worker: str, own: Mapping[str, object]) -> None:
    """Raise DeclarationError for an attribute of the worker's own that has nearly the name, and the type, of an option.

    Or the name that another library has for one.

    >>> refuse_misspelt("Greet", {"shard_count": 3})
    Traceback (most recent call last):
    ...
    lowkiq_lambda.base.errors.DeclarationError: Greet.shard_count is not an option: did you mean shards_count?
    """
    for name, value in own.items():
        if name in _OF_OTHER_LIBRARIES:
            raise DeclarationError(f"{worker}.{name} is not an option: did you mean {_OF_OTHER_LIBRARIES[name]}?")
        for option in get_close_matches(name, _OPTIONS, 1, _SIMILAR):
            if type(value) is _OPTIONS[option] and not name.startswith("_"):
                raise DeclarationError(f"{worker}.{name} is not an option: did you mean {option}?")


def unknown_variables(names: Iterable[str], *settings: type[EnvSettings]) -> list[str]:
    """A sentence for each `LOWKIQ_…` variable that is none of these settings.

    Nothing is refused: the variable may be one of another version, or of a program of the user's own.

    >>> from lowkiq_lambda.settings.config import Config
    >>> unknown_variables(["LOWKIQ_LEASE_TLL", "PATH"], Config)
    ['LOWKIQ_LEASE_TLL is unknown and has no effect: did you mean LOWKIQ_LEASE_TTL?']
    """
    variables = {variable_of(name) for kind in settings for name in kind.kinds()}.union(_OTHER_VARIABLES)
    unknown = sorted(name for name in names if name.startswith("LOWKIQ_") and name not in variables)
    return [f"{name} is unknown and has no effect: {_instead(name, variables)}" for name in unknown]


def _instead(name: str, names: Iterable[str]) -> str:
    similar = get_close_matches(name, names, 1, _SIMILAR)
    return f"did you mean {similar[0]}?" if similar else "no setting has this name."
