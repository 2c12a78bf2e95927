"""The duty that tells of what needs somebody: once when it begins, and once when it ends."""

import logging
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

from lowkiq_lambda.base.error_text import cut, headline
from lowkiq_lambda.declare.duty import ALERTS, ALERTS_EVERY, RunAgain
from lowkiq_lambda.duties.runner import DutyRunner
from lowkiq_lambda.operate.alerts.record import AlertRecord, AlertStore, Unsent
from lowkiq_lambda.operate.alerts.sending import AlertNotTaken, Send, webhook
from lowkiq_lambda.operate.doctor.checkup import look_and_sample

if TYPE_CHECKING:
    from lowkiq_lambda.base.clock import Clock
    from lowkiq_lambda.operate.operations import Operations

logger = logging.getLogger(__name__)

RESERVE: Final = 16.0
"""Seconds that one try may take: none begins with less of the run left."""
_SOON: Final = 20.0
"""Seconds to the next run while a message waits."""
_FAILS: Final = 5
"""Tries of one message after which the duty counts as failed, so that `lowkiq doctor` and the first page tell."""
_LONGEST_TEXT: Final = 1_000


class AlertDuty:
    """Once a minute: looks, notes what has begun and ended, and sends the messages that wait."""

    name: Final = ALERTS
    every: Final = ALERTS_EVERY

    def __init__(self, operations: "Operations", send: Send | None = None) -> None:
        self._operations = operations
        self._core = operations.core
        self._send = send or _destination_of(self._core.config.alert)

    def run(self, remaining: Callable[[], float]) -> object:
        """How many needs there are, and what became of messages. Raises BackendError, and AlertNotTaken after a while.

        A message is noted as tried before it is sent, with the time of the next try: a process that dies in between
        neither loses it nor has it repeated at once.
        """
        core = self._core
        store = AlertStore(core.backend, _name_of(core.config.alert), core.config.redis_retry_for)
        record = store.read()
        needs, _ = look_and_sample(self._operations)
        differs, dropped = record.note(needs, [*core.queues], core.clock.time())
        for message in dropped:
            logger.error("an alert was given up: too many wait", extra={"check": message.fields["check"]})
        if differs and not store.write(record):
            # Another process has told of the same.
            return {"needs": len(record.announced), "sent": 0, "failed": 0}
        sent, failures = self._deliver(store, record, remaining)
        summary = {"needs": len(record.announced), "sent": sent, "failed": len(failures)}
        if failures and any(message.tries >= _FAILS for message in record.waiting):
            raise AlertNotTaken(f"{len(record.waiting)} alerts wait: {failures[-1]}")
        return RunAgain(summary, _SOON if record.waiting else None)

    def _deliver(self, store: AlertStore, record: AlertRecord, remaining: Callable[[], float]) -> tuple[int, list[str]]:
        sent, failures, clock = 0, list[str](), self._core.clock
        while (message := record.due(clock.time())) and remaining() > RESERVE:
            message.put_off(clock.time())
            if not store.write(record):
                break
            try:
                self._send(self._body(message))
            except Exception as error:  # noqa: BLE001 - a callable of the user's may raise anything
                failures.append(headline(error))
                fields = {"alert": message.key, "check": message.fields["check"], "tries": message.tries}
                logger.warning("an alert was not taken, and is sent again: %s", headline(error), extra=fields)
                # The place is away for the others, too.
                break
            sent += 1
            record.waiting.remove(message)
            if not store.write(record):
                break
        return sent, failures

    def _body(self, message: Unsent) -> Mapping[str, Any]:
        fields = message.fields
        about = f"{fields['about']}: " if fields["about"] else ""
        line = f"{about}{fields['says']}"
        text = f"Ended: {line}" if message.event == "ends" else f"{line}. {fields['advice']}".strip()
        namespace = self._core.config.namespace or ""
        return {
            "text": cut(f"[{namespace}] {text}" if namespace else text, _LONGEST_TEXT),
            "key": message.key,
            "event": message.event,
            "at": message.at,
            "namespace": namespace,
            **fields,
        }


def alert_runner(operations: "Operations", clock: "Clock") -> DutyRunner:
    """The runner of the duty, which does not wait for other duties."""
    return DutyRunner(operations.core, [AlertDuty(operations)], clock, name=ALERTS)


def _destination_of(alert: object) -> Send:
    if isinstance(alert, str):
        return webhook(alert)
    if callable(alert):
        return alert
    raise TypeError(f"no alert is declared, but {alert!r}")


def _name_of(alert: object) -> str:
    """The same in each process of the app: the address, or the name of the function."""
    return alert if isinstance(alert, str) else f"{getattr(alert, '__module__', '')}.{_qualified(alert)}"


def _qualified(alert: object) -> str:
    return str(getattr(alert, "__qualname__", type(alert).__qualname__))
