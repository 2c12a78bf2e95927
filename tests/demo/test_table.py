"""The table keeps what was applied last, refuses who comes too late, and books what went wrong."""

import sqlite3
from contextlib import closing
from pathlib import Path
from threading import Barrier, Thread

import pytest

from lowkiq_lambda.local.demo.history import Change
from lowkiq_lambda.local.demo.table import Difference, StaleToken, Table, differences


def apply(table: Table, *seqs: int, path: str = "a", token: int = 1) -> None:
    """Apply changes of one file, each with its number as content."""
    for seq in seqs:
        table.apply(Change(seq, path, str(seq)), token)


def test_the_last_change_of_each_file_stays(table: Table) -> None:
    """A change replaces the content, a deletion takes the file away, and it may come back."""
    apply(table, 1, 2, 5)
    apply(table, 3, path="b")
    table.apply(Change(4, "b", None), 1)
    assert table.files() == {"a": "5"}
    apply(table, 6, path="b")
    assert table.files() == {"a": "5", "b": "6"}
    assert (table.applied, table.repeated, table.out_of_order) == (6, 0, 0)


def test_a_write_with_an_older_token_is_refused_whole(table: Table) -> None:
    """P4: a holder that overslept its lease changes neither the file nor the book."""
    apply(table, 1, token=7)
    apply(table, 2, token=8)
    with pytest.raises(StaleToken, match="token 7"):
        apply(table, 3, token=7)
    assert table.files() == {"a": "2"}
    assert table.missing([Change(3, "a", "3")]) == [Change(3, "a", "3")]
    assert (table.applied, table.repeated, table.out_of_order) == (2, 0, 0)
    apply(table, 3, path="b", token=7)
    assert table.files() == {"a": "2", "b": "3"}


def test_a_deletion_leaves_its_token(table: Table) -> None:
    """A late writer cannot bring a deleted file back."""
    apply(table, 1, token=1)
    table.apply(Change(2, "a", None), 2)
    with pytest.raises(StaleToken):
        apply(table, 1, token=1)
    assert table.files() == {}


@pytest.mark.parametrize("seqs", [(1, 2, 3, 1, 2, 3, 4), (1, 2, 3, 2, 3, 4), (1, 1, 1), (1, 2, 1, 1, 2, 3)])
def test_what_repeats_in_order_is_no_fault(table: Table, seqs: tuple[int, ...]) -> None:
    """At least once: a delivery that broke off comes again, from its beginning."""
    apply(table, *seqs)
    assert table.out_of_order == 0
    assert table.applied == len(set(seqs))
    assert table.repeated == len(seqs) - len(set(seqs))


@pytest.mark.parametrize(
    ("seqs", "faults"),
    [((2, 1), 1), ((1, 3, 2), 1), ((1, 2, 3, 1, 3), 1), ((1, 2, 1, 3), 1), ((3, 2, 1), 2)],
)
def test_what_comes_late_or_is_skipped_is_out_of_order(table: Table, seqs: tuple[int, ...], faults: int) -> None:
    """A change after a newer one that it never preceded counts, and a repeat that leaves one out."""
    apply(table, *seqs)
    assert table.out_of_order == faults


def test_other_files_have_an_order_of_their_own(table: Table) -> None:
    """Nothing is said about the order of different files."""
    apply(table, 9, path="a")
    apply(table, 1, path="b")
    assert table.out_of_order == 0


def test_a_base_is_there_before_the_first_change(table: Table) -> None:
    """A replay of a part starts from the files of the commit before, which every token may overwrite."""
    table.load({"a": "old", "b": "old"}, seq=4)
    assert table.files() == {"a": "old", "b": "old"}
    apply(table, 5)
    table.apply(Change(6, "b", None), 1)
    assert table.files() == {"a": "5"}
    assert (table.applied, table.out_of_order) == (2, 0)


def test_what_was_never_applied_is_missing(table: Table) -> None:
    """An equal end does not hide a change that was lost on the way."""
    apply(table, 1, 3)
    changes = [Change(seq, "a", str(seq)) for seq in (1, 2, 3)]
    assert table.missing(changes) == [changes[1]]


def test_several_threads_lose_nothing(table: Table) -> None:
    """Each thread's files end with its last change, and all are counted."""
    start = Barrier(4)

    def work(path: str) -> None:
        start.wait()
        apply(table, *range(1, 101), path=path)

    threads = [Thread(target=work, args=(path,)) for path in "abcd"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert table.files() == dict.fromkeys("abcd", "100")
    assert (table.applied, table.repeated, table.out_of_order) == (400, 0, 0)


def test_an_earlier_runs_file_starts_empty(tmp_path: Path) -> None:
    """A run says nothing about what another has done."""
    for _ in range(2):
        with closing(Table(tmp_path / "table.sqlite")) as table:
            assert table.files() == {}
            apply(table, 1)
            assert (table.applied, table.repeated) == (1, 0)


def test_others_may_read_while_it_is_written(table: Table, tmp_path: Path) -> None:
    """The file can be looked into with any SQLite client, at any time."""
    apply(table, 1)
    with closing(sqlite3.connect(tmp_path / "table.sqlite")) as other:
        other.execute("BEGIN")
        assert other.execute("SELECT path, blob FROM files").fetchall() == [("a", "1")]
        apply(table, 2)
    assert table.files() == {"a": "2"}


def test_differences_name_each_file_that_is_not_as_it_should_be() -> None:
    """Other content, a file too few, a file too many: each once, by path."""
    expected = {"same": "1", "other": "1", "lacking": "1"}
    found = {"same": "1", "other": "2", "extra": "1"}
    assert differences(expected, found) == [
        Difference("extra", None, "1"), Difference("lacking", "1", None), Difference("other", "1", "2")
    ]  # fmt: skip
    assert differences(expected, expected) == []
