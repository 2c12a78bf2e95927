"""Which shard an id belongs to."""

from zlib import crc32


def shard_for(job_id: str, shards_count: int) -> int:
    """The shard of an id, from 0 to `shards_count - 1`; the same number that Lowkiq computes."""
    return crc32(job_id.encode()) % shards_count
