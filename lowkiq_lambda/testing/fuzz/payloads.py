"""Payloads made from the type that a worker declares, by Hypothesis: the extra `fuzz`."""

from typing import Any, Final

from lowkiq_lambda.base.errors import ConfigError, LowkiqError
from lowkiq_lambda.declare.worker import Worker
from lowkiq_lambda.testing.fuzz.pool import PayloadPool

_EXAMPLES: Final = 60
_MOST: Final = 6
"""Payloads of a pool: more make equal payloads, which merge, too rare."""


def payloads_of(worker: type[Worker[Any]]) -> list[Any]:
    """A few payloads of the worker's type, the shortest first, and the same ones each time. Raises ConfigError."""
    kind = worker.payload
    if kind is None:
        raise ConfigError(f"{worker.__name__} declares no type of payloads: give payloads=[...].")
    try:
        from hypothesis import HealthCheck, Phase, given, settings, strategies  # noqa: PLC0415 - only where asked for
    except ImportError as error:
        raise ConfigError(
            "Payloads are made from the type by Hypothesis: pip install 'lowkiq-lambda[fuzz]', or give payloads=[...]."
        ) from error
    examples: dict[str, Any] = {}

    @settings(
        max_examples=_EXAMPLES,
        database=None,
        derandomize=True,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=[*HealthCheck],
    )
    @given(strategies.from_type(kind))
    def collect(payload: object) -> None:
        try:
            text = repr(PayloadPool(kind, [payload]).plain(0))
        except LowkiqError:
            # JSON cannot hold it, such as half of a surrogate pair.
            return
        examples.setdefault(text, payload)

    try:
        collect()
    except Exception as error:
        raise ConfigError(
            f"Hypothesis makes no payloads for {worker.__name__}: {error}; give payloads=[...]."
        ) from error
    return [examples[text] for text in sorted(examples, key=lambda text: (len(text), text))[:_MOST]]
