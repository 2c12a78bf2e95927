"""The payloads that scenarios push: each by its number, the simplest first."""

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from lowkiq_lambda.base.errors import ConfigError, LowkiqError
from lowkiq_lambda.declare.payloads import payload_type, plain_payload


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
