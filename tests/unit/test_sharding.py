"""Which shard an id belongs to."""

from zlib import crc32

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lowkiq_lambda.jobs.job import shard_for


@pytest.mark.parametrize(
    ("job_id", "checksum"),
    [("", 0), ("1", 2212294583), ("123456789", 3421780262), ("жук", 3949765776), ("🐞", 932905519)],
)
def test_shards_are_those_of_lowkiq(job_id: str, checksum: int) -> None:
    """LN-15: the shard is CRC-32 of the id's UTF-8 modulo shards_count, as Ruby's Zlib.crc32 gives it."""
    assert shard_for(job_id, 7) == checksum % 7
    assert shard_for(job_id, 2**32) == checksum


@given(st.text(st.characters(exclude_categories=["Cs"])), st.integers(1, 10_000))
def test_every_id_has_one_shard(job_id: str, shards_count: int) -> None:
    """Any text has a shard from 0 to shards_count - 1, and always the same."""
    shard = shard_for(job_id, shards_count)

    assert 0 <= shard < shards_count
    assert shard == crc32(job_id.encode()) % shards_count == shard_for(job_id, shards_count)
