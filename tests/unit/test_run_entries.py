"""The form of kept runs: what is packed is read again, and no bytes break a page."""

from array import array
from random import Random

import pytest

from lowkiq_lambda.operate.inspect.entry_runs import runs_in
from lowkiq_lambda.operate.inspect.run_filter import RunFilter
from lowkiq_lambda.operate.inspect.run_reader import RunPosition, StoredEntry
from lowkiq_lambda.operate.inspect.stored_errors import StoredErrors
from lowkiq_lambda.store.shard.run_entries import RunColumns, column, short_id, unpacked

COLUMNS = RunColumns(
    version=1,
    owner="host:17",
    release="r418",
    token=1_795_634_137_592_398,
    base=1_800_000_000.25,
    ids=["a", "b\0", "ü", "d"],
    took=array("I", [10, 25_000]).tobytes(),
    digests=array("I", [1, 2, 3, 4]).tobytes(),
    began=array("I", [0, 5_000]).tobytes(),
    sizes=array("H", [3, 1]).tobytes(),
    batches=array("H", [3, 1]).tobytes(),
    words=["retried"],
    outcomes=bytes([0, 1, 0, 0]),
    counts=array("I", [1, 1, 2, 1]).tobytes(),
    errors=[(b"12345678", b"ValueError: late")],
    failed=array("H", [0, 1, 0, 0]).tobytes(),
)


def entry(packed: bytes, *, is_recovery: bool = False) -> StoredEntry:
    """An entry with these bytes."""
    return StoredEntry(RunPosition(1_800_000_003_000, 0, 5, 2, 0), 4, packed, is_recovery)


def test_what_is_packed_is_read_again() -> None:
    """Also compressed, and where empty columns stand for what is usual."""
    usual = RunColumns(1, "h", "", 7, 1.5, ["a"], array("I", [1]).tobytes(), array("I", [1]).tobytes())
    long = RunColumns(1, "h", "", 7, 1.5, ["a" * 190] * 90, usual.took, usual.digests)

    assert [COLUMNS, usual, long] == [unpacked(one.packed()) for one in (COLUMNS, usual, long)]
    assert len(usual.packed()) < 40 < len(long.packed()) < 400


def test_the_runs_of_an_entry() -> None:
    """Each with the time of its batch, its outcome and its error; the last first."""
    (_, d), (_, ue), (place, b), (_, a) = runs_in(entry(COLUMNS.packed()), StoredErrors(), RunFilter())

    assert (1, "b\0", "retried", "ValueError: late", b"12345678".hex()) == (
        place,
        b.id,
        b.outcome,
        b.error,
        b.fingerprint,
    )
    assert (1_800_000_000.25, 0.001, "done", 3) == (a.at, a.took, a.outcome, a.batch)
    assert (1_800_000_000.75, 2.5, 1, "r418") == (d.at, d.took, d.batch, d.release)
    assert (2, "1800000003000.0.5.2.2", 2) == (ue.payloads, ue.entry, ue.shard)


@pytest.mark.parametrize("is_recovery", [False, True])
def test_no_bytes_break_a_page(is_recovery: bool) -> None:  # noqa: FBT001 - a parameter of the test
    """Whatever stands there, an entry is read, or is unreadable: no other error comes of it."""
    rng, packed = Random(7), COLUMNS.packed()
    read = 0
    for _ in range(1_500):
        broken = bytearray(packed)
        for _ in range(rng.randint(1, 3)):
            broken[rng.randrange(len(broken))] = rng.randrange(256)
        try:
            read += len(runs_in(entry(bytes(broken), is_recovery=is_recovery), StoredErrors(), RunFilter())) > 0
        except ValueError:
            continue

    assert is_recovery or 0 < read < 1_500


def test_a_long_id_is_cut_between_characters() -> None:
    """With the hash of all of it, so that two of them stay apart."""
    first, second = "é" * 150 + "a", "é" * 150 + "b"

    assert short_id(first)[:60] == short_id(second)[:60] == "é" * 60
    assert short_id(first) != short_id(second)
    assert all(len(short_id("x" * pad + "€" * 70).encode()) <= 200 for pad in range(4))
    assert "x" * 200 == short_id("x" * 200)


def test_a_column_of_the_usual_is_empty() -> None:
    """Most runs are done, of one payload and in a batch of one."""
    assert (b"", b"\x01\x02") == (column(array("B", [1, 1]), 1), column(array("B", [1, 2]), 1))
