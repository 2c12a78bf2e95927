"""Finds an attribute of a worker that is nearly an option: it would have no effect, and nobody would be told."""

from collections.abc import Mapping
from difflib import get_close_matches
from typing import Final

from lowkiq_lambda.errors import DeclarationError

_OPTIONS: Final[Mapping[str, type]] = {
    "shards_count": int,
    "batch_size": int,
    "max_retry_count": int,
    "queue_name": str,
    "merge": str,
    "isolate": bool,
}
_SIMILAR: Final = 0.85
"""The share of two names that is equal, for one to be taken for a slip of the other."""


def refuse_misspelt(worker: str, own: Mapping[str, object]) -> None:
    """Raise DeclarationError for an attribute of the worker's own that has nearly the name, and the type, of an option.

    >>> refuse_misspelt("Greet", {"shard_count": 3})
    Traceback (most recent call last):
    ...
    lowkiq_lambda.errors.DeclarationError: Greet.shard_count is not an option: did you mean shards_count?
    """
    for name, value in own.items():
        for option in get_close_matches(name, _OPTIONS, 1, _SIMILAR):
            if type(value) is _OPTIONS[option] and not name.startswith("_"):
                raise DeclarationError(f"{worker}.{name} is not an option: did you mean {option}?")
