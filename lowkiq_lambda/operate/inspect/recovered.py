"""Jobs that holders left behind, from the journals: for people."""

from lowkiq_lambda.operate.inspect.journal import read_journals
from lowkiq_lambda.operate.inspect.paging import check_limit
from lowkiq_lambda.operate.inspect.whereabouts import whereabouts
from lowkiq_lambda.store.shard.reader import ShardReader
from lowkiq_lambda.views.journal import JournalEntry, Recovered, Whereabouts


def recovered(reader: ShardReader, limit: int) -> list[Recovered]:
    """The last recoveries in the reader's shards, the newest first. Raises ValueError, BackendError."""
    check_limit(limit)
    journals = read_journals(reader, reader.shards.with_left())
    entries = [entry for journal in journals for entry in journal if entry.kind == "recovered"]
    newest = sorted(entries, key=lambda entry: (entry.at, entry.shard, entry.number), reverse=True)[:limit]
    now = whereabouts(reader, (job_id for entry in newest for job_id in entry.items[0]["ids"]))
    return [_told(entry, {job_id: now[job_id] for job_id in entry.items[0]["ids"]}) for entry in newest]


def _told(entry: JournalEntry, now: dict[str, Whereabouts]) -> Recovered:
    (item,) = entry.items
    return Recovered(
        at=entry.at,
        shard=entry.shard,
        shards_count=entry.shards_count,
        owner=item["owner"],
        token=entry.holder or 0,
        held_since=float(item["since"]) if item["since"] else None,
        how=item["how"],
        ids=item["ids"],
        more=item["count"] - len(item["ids"]),
        crash_counted=item["crash_counted"],
        dead=item["dead"],
        now=now,
    )
