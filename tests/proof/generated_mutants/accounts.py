"""What may be expected of a shard by one who knows what was pushed and what became of it: some rules for each call."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any, Final

import msgspec

from lowkiq_lambda.jobs import headers
from lowkiq_lambda.jobs.job import Delivery
from lowkiq_lambda.store.shard.session import ClaimLimits
from lowkiq_lambda.store.shard.state import NEAR
from tests.kit.stored import Entry, entry_of

NEVER: Final = -1.0
CRASHES: Final = 3
"""Deaths that kill a payload that runs alone."""
MOST_HEADERS: Final = 8
"""Payloads of an id of which a claim tells the headers for sure."""
_PLACE: Final = 14
"""Bytes that a stored payload has more."""


def number_of(entry: Entry) -> int:
    """The number of a payload."""
    return int(msgspec.json.decode(entry.payload, type=str).partition(":")[0])


class ShardAccount:
    """Raises AssertionError where the shard does something else."""

    def __init__(self) -> None:
        self.counts: dict[str, dict[int, float]] = defaultdict(dict)
        """By id, how often its payloads have failed."""
        self.errors: dict[str, bytes] = {}
        self.progress: dict[str, bytes] = {}
        self.due_from: dict[str, float] = {}
        """Ids that nobody may begin before a time."""
        self.is_known: dict[str, bool] = defaultdict(lambda: True)
        """Whether all of this is certain of the id: not once somebody has died over it."""
        self.in_dead_hands: set[str] = set()
        """Ids whose holder has died since they ended in any way."""
        self.in_parts: set[str] = set()
        """Such ids of which a part has ended: what follows need not say that it was in dead hands, too."""
        self.scores: dict[int, float] = {}
        """Of payloads that were pushed several times: the one that stays."""
        self.handed: set[int] = set()
        self.lone_deaths: dict[int, int] = defaultdict(int)
        """By payload, how often its process died while it ran alone."""
        self.token = 0
        self.acknowledged: dict[str, int] = defaultdict(int)
        self.unknown = 0

    def take(self, token: int) -> None:
        """Somebody has acquired the lease."""
        assert token > self.token, f"the token {token} is not larger than {self.token}"
        self.token = token

    def hand_over(self, deliveries: Sequence[Delivery], limits: ClaimLimits, now: float, *, charged: bool) -> None:
        """A claim."""
        assert len(deliveries) <= limits.ids, f"{len(deliveries)} ids were claimed, {limits.ids} at most"
        is_started = any(one.progress for one in deliveries)
        sizes = [[len(entry) - _PLACE for entry in one.entries] for one in deliveries]
        count, size = sum(map(len, sizes)), sum(map(sum, sizes))
        if not charged and not is_started:
            assert count <= max(1, limits.payloads), f"{count} payloads were claimed, {limits.payloads} at most"
        assert size <= limits.bytes or count == 1 or charged or is_started, (
            f"{size} bytes were claimed, {limits.bytes} at most"
        )
        for one in deliveries:
            entries = [entry_of(entry) for entry in one.entries]
            self.handed.update(map(number_of, entries))
            for entry in entries:
                score = self.scores.get(number_of(entry), entry.score)
                assert entry.score == score, f"{one.id} {number_of(entry)} has the score {entry.score}, not {score}"
            assert not limits.chunk or len(one.entries) <= limits.chunk or one.progress, f"{one.id} has a larger chunk"
            self._expect(one, now)

    def _expect(self, one: Delivery, now: float) -> None:
        numbers = [number_of(entry_of(entry)) for entry in one.entries]
        assert one.due_at <= now + NEAR, f"{one.id} is not due"
        if not self.is_known[one.id]:
            return
        count = self.counts[one.id].get(numbers[0], NEVER)
        assert one.retry_count == count, f"{one.id} {numbers[0]} failed {count} times, and is told {one.retry_count}"
        assert now + NEAR >= self.due_from.get(one.id, 0.0), f"{one.id} comes before its time"
        assert (one.error or b"") == self.errors.get(one.id, b""), f"{one.id} is told {one.error!r}"
        assert one.progress == self.progress.get(one.id, b""), f"{one.id} goes on at {one.progress!r}"

    def end(self, one: Delivery, record: Sequence[Any]) -> None:
        """An outcome that was acknowledged."""
        job_id, word = one.id, record[1]
        numbers = [number_of(entry_of(entry)) for entry in one.entries]
        self.acknowledged[word] += 1
        if job_id in self.in_dead_hands:
            self.in_dead_hands.remove(job_id)
            self.in_parts.add(job_id)
        self.due_from.pop(job_id, None)
        if word in ("done", "rejected", "expired", "dead"):
            left = numbers if word != "dead" else numbers[:1]
            for number in left:
                self.counts[job_id].pop(number, None)
            self.errors.pop(job_id, None)
            self.progress.pop(job_id, None)
            self.is_known[job_id] = word == "done" and self.is_known[job_id]
        elif word == "retried":
            self.counts[job_id][numbers[0]] = record[2]
            self.errors[job_id] = record[4]
            self.due_from[job_id] = record[3]
        elif word == "later":
            if record[3]:
                self.counts[job_id].clear()
                self.errors.pop(job_id, None)
            if record[2]:
                self.due_from[job_id] = float(record[2])
        if word in ("done", "rejected", "expired"):
            self.is_known[job_id] = True

    def forget(self, ids: Iterable[str]) -> None:
        """Nothing is certain of these any more."""
        for job_id in ids:
            self.is_known[job_id] = False

    def die(self, deliveries: Iterable[Delivery], *, is_lone: bool) -> None:
        """Somebody died who had these in his hands."""
        for one in deliveries:
            self.is_known[one.id] = False
            self.in_dead_hands.add(one.id)
            if is_lone and len(one.entries) == 1:
                self.lone_deaths[number := number_of(entry_of(one.entries[0]))] += 1
                if self.lone_deaths[number] == CRASHES:
                    self.in_parts.add(one.id)

    def repeated(self, one: Delivery) -> bool | None:
        """Whether the shard says that it comes again; None where it need not say so."""
        return one.repeated or (None if one.id in self.in_parts else False)

    def check_headers(self, one: Delivery) -> None:
        """Each payload has the headers of its push."""
        read = [int(each["number"]) for each in headers.read(one.headers)]
        numbers = [number_of(entry_of(entry)) for entry in one.entries]
        assert {*read} == {*numbers} if len(numbers) <= 8 else {*read} <= {*numbers}, (
            f"{one.id} {numbers} has headers {read}"
        )
