"""The payloads that scenarios push, each by its number: those of the test, or made from the declared type."""

from collections.abc import Iterable, Sequence
from typing import Any, Final

import msgspec

from lowkiq_lambda.base.errors import ConfigError, LowkiqError
from lowkiq_lambda.declare.payloads import payload_type, plain_payload
from lowkiq_lambda.declare.worker import Worker

_EXAMPLES: Final = 60
_MOST: Final = 6
"""Payloads of a pool: more make equal payloads, which merge, too rare."""


class PayloadPool:
    """The payloads, for a worker whose payloads are of type `kind`; None if they are any JSON."""

    def __init__(self, kind: Any, payloads: Iterable[Any]) -> None:  # noqa: ANN401 - any type
        self._kind = kind
        self._payloads = list(payloads)
        if not self._payloads:
            raise ConfigError("A fuzz needs a payload at least: give payloads=[...].")

    def __len__(self) -> int:
        return len(self._payloads)

    def __getitem__(self, position: int) -> Any:  # noqa: ANN401 - any payload
        return self._payloads[position]

    @property
    def payloads(self) -> Sequence[Any]:
        """All of them."""
        return tuple(self._payloads)

    def plain(self, position: int) -> Any:  # noqa: ANN401 - any JSON
        """The payload as JSON values. Raises ConfigError if JSON cannot hold it."""
        payload = self._payloads[position]
        try:
            # Through JSON, as types that msgspec knows have a form of their own there.
            encoded = msgspec.json.encode(payload if self._kind is None else plain_payload(self._kind, payload))
        except (LowkiqError, TypeError, ValueError, msgspec.MsgspecError) as error:
            raise ConfigError(f"The payload {payload!r} cannot be written into a plan: {error}") from error
        return msgspec.json.decode(encoded)

    def position_of(self, plain: Any) -> int:  # noqa: ANN401 - any JSON
        """The number of the payload that has this form; it is added if the pool has none. Raises ValueError."""
        for position in range(len(self)):
            if self.plain(position) == plain:
                return position
        try:
            self._payloads.append(plain if self._kind is None else payload_type(self._kind).load(plain))
        except (LowkiqError, ValueError) as error:
            raise ValueError(f"the payload {plain!r} is not of the worker's type: {error}") from error
        return len(self) - 1


def typed(kind: Any, payloads: Sequence[Any]) -> list[Any]:  # noqa: ANN401 - any type
    """Payloads that are plain JSON, as values of the type. Raises ConfigError."""
    if kind is None:
        return [*payloads]
    try:
        return [*map(payload_type(kind).load, payloads)]
    except (LowkiqError, ValueError) as error:
        raise ConfigError(f"A recorded payload is not of the worker's type: {error}.") from None


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
