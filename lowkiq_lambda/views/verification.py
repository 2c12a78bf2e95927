"""The verdicts of housekeeping on sampled shards, for people."""

import msgspec


class KeptViolation(msgspec.Struct, frozen=True):
    """A violation, `at` Unix seconds, that is kept until somebody acknowledges it.

    `number` is that of the journal entry that shows it, 0 for the shard's content; `evidence` is the key of Redis with
    the entries that were judged, empty if the server had no room for them.
    """

    at: float
    rule: str
    id: str
    shard: int
    shards_count: int
    number: int
    what: str
    evidence: str

    def __str__(self) -> str:
        where = f"entry {self.number}" if self.number else "at the end"
        return f"{self.rule}: id {self.id!r}, shard {self.shard} of {self.shards_count}, {where}: {self.what}"


class DeletedJournal(msgspec.Struct, frozen=True):
    """A journal that was deleted while it was recorded, so that it proves nothing."""

    at: float
    shard: int
    shards_count: int


class Verified(msgspec.Struct, frozen=True):
    """The verification of a queue by housekeeping within the last day. Times are Unix seconds.

    `share`: of the time of all shards, the part that was judged, and `span`, the seconds that it is of: a day, or those
    since the first run; `payloads` and `events`: how many were judged in it.
    `looked_at`: the time of the last verdict, None if there is none yet. `found`: how many violations there were that
    nobody has acknowledged, and `violations` the last of them.
    """

    at: float
    looked_at: float | None
    span: float
    share: float
    payloads: int
    events: int
    found: int
    violations: tuple[KeptViolation, ...]
    deleted: tuple[DeletedJournal, ...]

    @property
    def says(self) -> str:
        """All of it in a sentence."""
        if self.looked_at is None:
            return "nothing yet: the first shard has not been drawn and judged"
        verdict = _count(self.found, "violation") if self.found else "no violation"
        parts = [f"{_percent(self.share)} of the last {_span(self.span)}", _count(self.payloads, "payload"), verdict]
        if self.deleted:
            parts.append(f"{_count(len(self.deleted), 'journal')} deleted and not verified")
        return f"{', '.join(parts)}; last look {_ago(self.at - self.looked_at)} ago"


def _percent(share: float) -> str:
    percent = 100 * share
    return f"{percent:.1f} %" if percent >= 0.1 or not percent else "less than 0.1 %"  # noqa: PLR2004 - what is shown


def _count(number: int, name: str) -> str:
    return f"{number:,} {name}{'' if number == 1 else 's'}"


def _span(seconds: float) -> str:
    return "day" if seconds > 23 * 3_600 else _ago(seconds)


def _ago(seconds: float) -> str:
    for size, unit in ((86_400, "d"), (3_600, "h"), (60, "min")):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {unit}"
    return f"{max(0.0, seconds):.0f} s"
