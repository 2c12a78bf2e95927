"""What is pushed when: of rates, of rows, and of files, also of those that lie."""

from pathlib import Path
from typing import Any

import pytest

from lowkiq_lambda.jobs.job import digest
from lowkiq_lambda.simulate import BadTimes, BadTrace, Choice, Times, Trace, simulate, trace


def file_of(folder: Path, text: str | bytes) -> Path:
    """A file with this text."""
    path = folder / "jobs.csv"
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


@pytest.mark.parametrize(
    "text",
    [
        "at,id,payloads\n10.5,a,1\n10.5,b,2\n80,a,1\n",
        "\ufeffat,id,payloads\r\n10.5,a,1\r\n10.5,b,2\r\n80,a,1\r\n",
        "AT;ID;Payloads\n10,5;a;1\n10,5;b;2\n\n80;a;1\n",
        'at\tid\tpayloads\n10.5\t"a"\t1\n10.5\tb\t2\n80\ta\t1',
        "id,at,payloads,more\na,10.5,1,x\nb,1970-01-01T00:00:10.5Z,2,\na,1970-01-01 00:01:20,1,\n",
    ],
    ids=["plain", "with a BOM", "semicolons", "tabs", "other columns and dates"],
)
def test_a_file_has_a_push_in_each_row(tmp_path: Path, text: str) -> None:
    """Separators, a mark of the order of bytes, and the way in which times are written make no difference."""
    trace = Trace.read_csv(file_of(tmp_path, text))

    assert ([10.5, 10.5, 10.5, 80], [0, 1, 1, 0], 2) == ([*trace.at], [*trace.ids], len(trace.hashes))


@pytest.mark.parametrize("minutes", ["28333333", "1699999980", "2023-11-14T22:13Z"])
def test_a_file_may_have_what_came_in_each_minute(tmp_path: Path, minutes: str) -> None:
    """A minute is a number, Unix seconds or a date, and a minute without a row has no jobs."""
    trace = Trace.read_csv(file_of(tmp_path, f"minute,jobs\n{minutes},600\n"), ids=50)

    assert (50, 60.0, 1_699_999_980.0) == (len(trace.hashes), trace.seconds, trace.starts_at)
    assert 600 == trace.jobs


def test_a_gap_has_no_jobs(tmp_path: Path) -> None:
    """Between two minutes of a file nothing is pushed, for a week, too."""
    trace = Trace.read_csv(file_of(tmp_path, "minute,jobs\n0,60\n10080,60\n"))
    counts = trace.per_step()

    assert (10_082, 0) == (len(counts), sum(counts[1:10_080]))


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "the file is empty"),
        ("\n\n", "the file is empty"),
        ("at,id\n", "there is no row in it"),
        ("minute,jobs\n", "there is no row in it"),
        ("when,who\n1,a\n", "line 1: expected at,id or at,id,payloads or minute,jobs, not 'when,who'"),
        ("at,id\n5,a\n4,b\n", "line 3: the time runs backwards, from 5.000 to 4.000"),
        ("at,id\n5,a\nsoon,b\n", "line 3: 'soon' is not a number"),
        ("at,id\nnan,a\n", "line 2: 'nan' is not a number"),
        ("at,id,payloads\n5,a,0\n", "line 2: '0' is not a whole number from 1 to 1,000,000"),
        ("at,id,payloads\n5,a\n", "line 2: 2 columns, and the first line has 3"),
        ("at,id\n5,a,7\n", "line 2: 3 columns, and the first line has 2"),
        ("at,id\n5,a\n6, \n", "line 3: it has no id"),
        ('at,id\n5,"a\n6,b\n', "line 3: unexpected end of data"),
        ("at,id\n0,a\n99999999,b\n", "it is more than 400 days after the first"),
        ("minute,jobs\n3,1\n3,1\n", "line 3: minute 3 is not after minute 3"),
        ("minute,jobs\n3,-1\n", "line 2: -1 jobs: give a number from 0 to 1,000,000,000"),
        ("minute,jobs\n3,99000000\n", "these are 99,000,000 jobs, of at most 20,000,000"),
        (b"at,id\n\xff\xfe,a\n", "jobs.csv: it is not UTF-8"),
    ],
)
def test_a_file_that_lies_is_refused_with_its_line(tmp_path: Path, text: str | bytes, complaint: str) -> None:
    """Nothing is guessed of a row that cannot be."""
    with pytest.raises(BadTrace) as refused:
        Trace.read_csv(file_of(tmp_path, text))

    assert complaint in str(refused.value)
    assert "jobs.csv" in str(refused.value)


def test_rows_with_more_payloads_than_fit_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Before they are laid in memory."""
    monkeypatch.setattr(trace, "MOST_JOBS", 10)

    with pytest.raises(BadTrace, match="row 2: there are more than 10 payloads up to it"):
        Trace.of_rows([(1.0, "a", 5), (2.0, "b", 1_000_000)])


def test_a_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    """The error says which file, and why."""
    with pytest.raises(BadTrace, match=r"nothing\.csv: No such file"):
        Trace.read_csv(tmp_path / "nothing.csv")


@pytest.mark.parametrize(
    "changes", [{"rates": []}, {"rates": [-1.0]}, {"rates": [float("nan")]}, {"ids": 0}, {"hot": 1.5}, {"step": 1e9}]
)
def test_rates_that_cannot_be_are_refused(changes: dict[str, Any]) -> None:
    """No rate is negative, and no trace without time or ids."""
    with pytest.raises(BadTrace):
        Trace.of_rates(**{"rates": [1.0], **changes})


def test_an_id_is_in_the_shard_that_the_queue_has_it_in() -> None:
    """The hash of an id is the one that decides about real shards."""
    trace = Trace.of_rows([(0.0, "order-17", 1), (1.0, 17, 1), (2.0, "straße", 1)])

    assert [digest("order-17"), digest("17"), digest("straße")] == [*trace.hashes]


def test_skew_and_one_hot_id_have_their_share() -> None:
    """With Zipf the most frequent id has 1 / H of the pushes, and a hot one its share."""
    skewed, hot = Trace.of_rates([100.0] * 5, ids=100, skew=1.0), Trace.of_rates([100.0] * 5, ids=100, hot=0.4)

    assert 1 / 5.187 == pytest.approx(skewed.ids.count(0) / skewed.jobs, rel=0.05)
    assert 0.4 == pytest.approx(hot.ids.count(0) / hot.jobs, rel=0.05)


def test_a_part_of_a_trace_begins_at_zero() -> None:
    """The pushes between two moments, with their ids."""
    part = Trace.of_rows([(0, "a", 1), (70, "b", 1), (80, "a", 1), (130, "c", 1)]).between(60, 120)

    assert ([10, 20], [1, 0], 60, 60) == ([*part.at], [*part.ids], part.seconds, part.starts_at)


@pytest.mark.parametrize(
    "rows",
    [[(5.0, "a", 1)] * 500, [(0.0, "a", 1), (7 * 86_400.0, "a", 1)], [(0.0, "a", 100_000)]],
    ids=["one moment", "a gap of a week", "one id with many payloads"],
)
def test_strange_traces_come_to_their_end(rows: list[tuple[float, str, int]]) -> None:
    """All payloads of one id at once are one call or few, and a week without pushes takes no time."""
    for compute in ("daemon", "minute"):
        outcome = simulate(Trace.of_rows(rows), Times(), Choice(compute=compute))
        assert sum(payloads for *_, payloads in rows) == outcome.jobs
        assert outcome.calls <= 3


def test_a_handler_that_takes_no_time_is_simulated() -> None:
    """With times of 0 the engine's own are left."""
    outcome = simulate(Trace.of_rates([100.0]), Times(), Choice())

    assert 0 < outcome.p95 < 0.01


@pytest.mark.nightly("ten million ids take a quarter of a minute")
def test_ten_million_ids_fit() -> None:
    """Each id costs a few words, whether it is pushed or not."""
    outcome = simulate(Trace.of_rates([1_000.0], ids=10_000_000), Times(fixed=0.001), Choice())

    assert outcome.jobs > 50_000


def test_times_are_read_as_people_write_them() -> None:
    """Parts are added up, and a number alone is seconds."""
    assert Times(fixed=0.04, each_payload=0.01, each_id=0.002) == Times.parse("40ms + 10ms/payload+2ms/id")
    assert Times(fixed=1.5, spread=0.5, computing=0.2) == Times.parse("1.5s", spread=0.5, computing=0.2)
    assert Times(fixed=61.0) == Times.parse("1m+1s")


@pytest.mark.parametrize("text", ["", "soon", "5ms/shard", "-1s", "2d", "1..5s", "999999s", "nan"])
def test_times_that_say_nothing_are_refused(text: str) -> None:
    """The error has the text in it."""
    with pytest.raises(BadTimes) as refused:
        Times.parse(text)

    assert text in str(refused.value)


def test_a_choice_that_cannot_be_is_refused() -> None:
    """A queue in which all ids fail would never end, and a claim has a bound."""
    with pytest.raises(ValueError, match="below 100 %"):
        Choice(failures=1.0)
    with pytest.raises(ValueError, match="at most 1,000"):
        Choice(batch=100, concurrency=50)
