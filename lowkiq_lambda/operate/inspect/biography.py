"""The life of an id, from the journals of the shards that it has been in."""

from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Any, Final

from lowkiq_lambda.jobs.job import Failure
from lowkiq_lambda.operate.inspect.journal_stretch import last_stretch
from lowkiq_lambda.views.journal import Biography, JournalEntry, LifeEvent, Whereabouts

_CLAIMED, _JOINED = "claimed", "joined"
_PLACE: Final = 2
"""Numbers of a place: score and arrival number."""


def biography(
    job_id: str, journals: Sequence[list[JournalEntry]], now: Whereabouts, failures: Sequence[Failure], *, is_on: bool
) -> Biography:
    """The events of the id in the journals of the shards that it may have been in, at last the one that it is in.

    `is_on`: whether that one still writes all into its journal.
    """
    entries = journals[-1]
    stretch = last_stretch(entries, is_on=is_on)
    events = chain.from_iterable(_events(journal, job_id) for journal in journals)
    return Biography(
        id=job_id,
        now=now,
        events=sorted(events, key=lambda event: event.at),
        failures=[*failures],
        since=stretch.since if stretch.is_open else None,
        trouble_since=entries[0].at if entries and entries[0].number > 1 else None,
    )


def _events(journal: Sequence[JournalEntry], job_id: str) -> Iterator[LifeEvent]:
    """The events of one shard. An event of all ids in flight concerns the id if it was in flight."""
    is_flying = False
    for entry in journal:
        for item in entry.items:
            if isinstance(item, dict):
                concerned = job_id in item.get("ids", ()) or (entry.kind == "recovered" and is_flying)
                numbers: Sequence[Any] = ()
            else:
                concerned, numbers = (item[0] == job_id, item[1:]) if item else (is_flying, ())
            if concerned:
                is_flying = entry.kind == _CLAIMED or (is_flying and entry.kind in _STILL_FLYING)
                yield _event(entry, numbers)


_STILL_FLYING: Final = frozenset(
    {"pushed", _JOINED, "evicted", "deleted", "killed", "requeued", "trimmed", "unblocked"}
)
"""Events that leave an id in flight."""


def _event(entry: JournalEntry, numbers: Sequence[Any]) -> LifeEvent:
    is_claim = entry.kind == _CLAIMED
    digits, rule = [*(numbers[-1] if numbers and isinstance(numbers[-1], list) else ()), "", ""][:2]
    places = numbers[: 2 * _PLACE] if is_claim else numbers
    arrivals = [*dict.fromkeys(places[1::_PLACE])]
    return LifeEvent(
        at=entry.at,
        shard=entry.shard,
        shards_count=entry.shards_count,
        number=entry.number,
        kind=entry.kind,
        token=entry.holder,
        call=None if entry.holder is None else int(entry.call),
        payloads=numbers[2 * _PLACE] if is_claim else 1 if arrivals else None,
        arrivals=arrivals,
        rule=rule,
        fingerprint=digits,
    )
