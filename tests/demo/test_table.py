"""The table keeps what was applied last, refuses who comes too late, and books what went wrong."""

import sqlite3
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from threading import Barrier

import pytest

from local.demo.history import Change
from local.demo.table import Difference, StaleToken, Table, differences


def apply(table: Table, *seqs: int, path: str = "a", token: int = 1) -> None:
    """Apply changes of one file, each with its number as content."""
    for seq in seqs:
        table.apply(Change(seq, path, str(seq)), token)


def test_differences_name_each_file_that_is_not_as_it_should_be() -> None:
    """Other content, a file too few, a file too many: each once, by path."""
    expected = {"same": "1", "other": "1", "lacking": "1"}
    found = {"same": "1", "other": "2", "extra": "1"}
    assert differences(expected, found) == [
        Difference("extra", None, "1"), Difference("lacking", "1", None), Difference("other", "1", "2")
    ]  # fmt: skip
    assert differences(expected, expected) == []


def test_the_last_change_of_each_file_stays(table: Table) -> None:
    """A change replaces the content, a deletion takes the file away, it may come back; a lost change is known."""
    apply(table, 1, 2, 5)
    apply(table, 3, path="b")
    table.apply(Change(4, "b", None), 1)
    assert {"a": "5"} == table.files()
    apply(table, 6, path="b")
    assert {"a": "5", "b": "6"} == table.files()
    assert (6, 0, 0) == (table.applied, table.repeated, table.out_of_order)
    changes = [Change(seq, "a", str(seq)) for seq in (1, 2, 3)]
    assert changes[2:] == table.missing(changes)


def test_a_write_with_an_older_token_is_refused_whole(table: Table) -> None:
    """P4: a holder that overslept its lease changes neither the file, deleted or not, nor the book."""
    apply(table, 1, token=7)
    apply(table, 2, token=8)
    table.apply(Change(2, "c", None), 8)
    for path in "ac":
        with pytest.raises(StaleToken, match="token 7"):
            apply(table, 3, token=7, path=path)
    apply(table, 3, path="b", token=7)
    assert {"a": "2", "b": "3"} == table.files()
    assert [Change(3, "a", "3")] == table.missing([Change(3, "a", "3")])
    assert (4, 0, 0) == (table.applied, table.repeated, table.out_of_order)


@pytest.mark.parametrize(
    ("seqs", "faults"),
    [
        ((1, 2, 3, 1, 2, 3, 4), 0), ((1, 2, 3, 2, 3, 4), 0), ((1, 1, 1), 0), ((1, 2, 1, 1, 2, 3), 0),
        ((2, 1), 1), ((1, 3, 2), 1), ((1, 2, 3, 1, 3), 1), ((1, 2, 1, 3), 1), ((3, 2, 1), 2),
    ],
)  # fmt: skip
def test_a_repeat_in_order_is_no_fault_and_what_comes_late_is_one(
    table: Table, seqs: tuple[int, ...], faults: int
) -> None:
    """At least once: a delivery comes again from its beginning. A file's order says nothing of another's."""
    apply(table, 9, path="other")
    apply(table, *seqs)
    assert faults == table.out_of_order
    assert (1 + len(set(seqs))) == table.applied
    assert len(seqs) - len(set(seqs)) == table.repeated or faults


def test_a_table_begins_with_its_base_and_without_an_earlier_run(tmp_path: Path) -> None:
    """Every token may overwrite the files of the commit before; any SQLite client may read meanwhile."""
    for _ in range(2):
        with closing(Table(tmp_path / "table.sqlite")) as table:
            table.load({"a": "old", "b": "old"}, seq=4)
            assert {"a": "old", "b": "old"} == table.files()
            with closing(sqlite3.connect(tmp_path / "table.sqlite")) as other:
                other.execute("BEGIN")
                assert [("a",), ("b",)] == other.execute("SELECT path FROM files ORDER BY path").fetchall()
                apply(table, 5)
            table.apply(Change(6, "b", None), 1)
            assert {"a": "5"} == table.files()
            assert (2, 0, 0) == (table.applied, table.repeated, table.out_of_order)


def test_several_threads_lose_nothing(table: Table) -> None:
    """Each thread's files end with its last change, and all are counted."""
    start = Barrier(4)

    def work(path: str) -> None:
        start.wait()
        apply(table, *range(1, 101), path=path)

    with ThreadPoolExecutor(4) as pool:
        assert [None] * 4 == list(pool.map(work, "abcd"))
    assert dict.fromkeys("abcd", "100") == table.files()
    assert (400, 0, 0) == (table.applied, table.repeated, table.out_of_order)
