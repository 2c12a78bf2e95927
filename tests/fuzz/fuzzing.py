"""How each planted handler is fuzzed."""

from typing import Any, Final

from lowkiq_lambda.testing.fuzz.options import FuzzOptions
from lowkiq_lambda.testing.fuzz.oracle import Effect
from tests.fuzz import planted
from tests.fuzz.payloads import ADDED, STATUSES
from tests.fuzz.planted import rows, send_mail


def _of_table(select: str, payloads: list[Any]) -> FuzzOptions:
    return FuzzOptions(state=lambda: rows(select), payloads=payloads)


_POINTS: Final = _of_table("SELECT id, n FROM points", ADDED)
_ORDERS: Final = _of_table("SELECT id, status FROM orders", STATUSES)
_MAIL: Final = FuzzOptions(effects={"mail": Effect(lambda: planted.mails)}, outside=[send_mail], payloads=STATUSES)
_JOURNAL: Final = FuzzOptions(state=lambda: planted.journal, payloads=STATUSES)
OPTIONS: Final[dict[str, FuzzOptions]] = {
    "Counter": FuzzOptions(state=lambda: planted.points, payloads=ADDED),
    "CounterMended": _POINTS,
    "Mail": _MAIL,
    "MailAfterCommit": _MAIL,
    "MailMended": _MAIL,
    "LastWins": _ORDERS,
    "ReadThenWrite": _ORDERS,
    "AddsAndReads": FuzzOptions(
        state=lambda: (planted.runs.get(1.0, 0) > 1, planted.orders), payloads=STATUSES, merges=False
    ),
    "ThereAndBack": _ORDERS,
    "LastWinsMended": _ORDERS,
    "Partial": _POINTS,
    "PartialMended": _POINTS,
    "FirstOfMany": _JOURNAL,
    "CatchesAll": _JOURNAL,
    "NotesFailures": _JOURNAL,
    "NotesFailuresAwaited": _JOURNAL,
    "NotesFailuresByPage": _JOURNAL,
    "PushesItself": _JOURNAL,
    "RefusesRepeats": _JOURNAL,
    "Pages": _JOURNAL,
    "PagesMended": _JOURNAL,
    "CountsPayloads": _JOURNAL,
    "Awaited": _JOURNAL,
    "AwaitedMended": _JOURNAL,
    "MarksFirst": _POINTS,
    "MarksMended": _POINTS,
    "CallsTwice": FuzzOptions(state=lambda: planted.journal, payloads=STATUSES, outside=[planted.note]),
}


def options_of(name: str, **more: Any) -> FuzzOptions:
    """Those of a handler, with others beside."""
    return FuzzOptions(**{"reset": planted.reset, "scenarios": 100, **OPTIONS[name], **more})  # type: ignore[typeddict-item]  # a dict by its names
