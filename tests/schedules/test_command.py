"""`lowkiq schedules`: what entries will do, told without Redis."""

import json
from pathlib import Path
from typing import Final

import pytest

from lowkiq_lambda.base.clock import SystemClock
from lowkiq_lambda.cli import main
from tests.schedules.moments import at

ENTRIES: Final = """
[nightly]
cron = "30 2 * * *"
tz = "Europe/Berlin"
worker = "SyncOrder"
id = "all"
missed = "all"
grace = 86400

[half-hours]
cron = "*/30 2 * * *"
tz = "Europe/Berlin"
worker = "SyncOrder"
id = 7

[poll]
every = 600
offset = 30
worker = "Poll"
id = 7
missed = "skip"

[year]
at = 2026-12-31T23:00:00Z
worker = "Close"
id = "year"
"""

APP: Final = """
from lowkiq_lambda import Lowkiq

app = Lowkiq()

@app.worker(shards_count=1)
def poll(batch):
    pass

for number in range(5):
    app.cron("0 4 * * *", poll, id=number, jitter=0 if number < 4 else 3600)
app.every(3600, poll, id="hourly", payload={"full": True})
"""


@pytest.fixture
def toml(tmp_path: Path) -> str:
    """A file with entries of each kind."""
    return written(tmp_path, "schedules.toml", ENTRIES)


@pytest.fixture
def app(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """An app whose server nobody could reach."""
    monkeypatch.setenv("LOWKIQ_REDIS_URL", "redis://127.0.0.1:1/0")
    monkeypatch.syspath_prepend(tmp_path)
    written(tmp_path, f"{tmp_path.name}_jobs.py", APP)
    return f"{tmp_path.name}_jobs:app"


def written(folder: Path, name: str, text: str) -> str:
    """The path of a file with this text."""
    (folder / name).write_text(text, encoding="utf-8")
    return str(folder / name)


def printed(capsys: pytest.CaptureFixture[str], *words: str, code: int = 0) -> str:
    """What the command prints."""
    assert code == main(["schedules", *words])
    said = capsys.readouterr()
    assert "" == said.err
    return said.out


def test_next_tells_zone_utc_and_the_clocks(capsys: pytest.CaptureFixture[str], toml: str) -> None:
    """X-24: the night in which the clocks of Berlin go from 02:00 to 03:00."""
    text = printed(capsys, "next", toml, "-n", "3", "--from", "2026-03-28")

    night, halves, poll, year = text.split("\n\n")
    assert [
        "nightly of SyncOrder: cron 30 2 * * *, Europe/Berlin: At 02:30 every day",
        "  Sat 2026-03-28 02:30:00 +01:00   2026-03-28 01:30:00Z",
        "  Sun 2026-03-29 03:00:00 +02:00   2026-03-29 01:00:00Z  in place of 02:30, which the clocks leave out",
        "  Mon 2026-03-30 02:30:00 +02:00   2026-03-30 00:30:00Z",
    ] == night.splitlines()
    assert "2026-03-29 01:00:00Z  the clocks leave out 02:00, 02:30" in halves
    assert "\n  2026-03-28 00:00:30Z\n" in poll
    assert (
        "year of Close: at 2026-12-31T23:00:00+00:00, UTC: Once, at 2026-12-31T23:00:00+00:00" == year.splitlines()[0]
    )


def test_next_marks_what_the_clocks_repeat(capsys: pytest.CaptureFixture[str], toml: str) -> None:
    """By the wall clock the first time counts; by real time both do."""
    night, halves, *_ = printed(capsys, "next", toml, "--from", "2026-10-24T23:00").split("\n\n")

    assert "2026-10-25 00:30:00Z  the clocks repeat this time: it fires the first time\n" in night
    assert [
        "2026-10-25 00:00:00Z  the clocks repeat this time: the first of two",
        "2026-10-25 00:30:00Z  the clocks repeat this time: the first of two",
        "2026-10-25 01:00:00Z  the clocks repeat this time: the second of two",
        "2026-10-25 01:30:00Z  the clocks repeat this time: the second of two",
    ] == [line[35:] for line in halves.splitlines()[1:5]]


def test_next_tells_what_an_outage_does(capsys: pytest.CaptureFixture[str], toml: str) -> None:
    """C-8: which planned times would fire when a process looks again, which never, and which come next."""
    text = printed(capsys, "next", toml, "-n", "1", "--outage", "2026-03-28/2026-03-30T06:00:10")

    night, _, poll, year = text.split("\n\n")
    assert [
        '  Nobody looks from 2026-03-28 00:00:00Z to 2026-03-30 06:00:10Z; missed="all", at most 1 d late:',
        "    fires    2026-03-30 00:30:00Z  5 h 30 min late",
        "    missed   2026-03-28 01:30:00Z  2 d 4 h late",
        "    missed   2026-03-29 01:00:00Z  1 d 5 h late",
        "    next     2026-03-31 00:30:00Z",
    ] == night.splitlines()[2:]
    assert 'missed="skip", at most 2 min late:' in poll
    assert "    missed   100 or more, from 2026-03-29 13:20:30Z to 2026-03-30 05:50:30Z\n" in poll
    assert ["    nothing was due", "    next     2026-12-31 23:00:00Z"] == year.splitlines()[3:]


def test_next_tells_that_the_rest_comes_later(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """A hundred firings are made at once."""
    table = '[a]\nevery = 60\nworker = "A"\nid = 1\nmissed = "all"\ngrace = 86400\n'

    text = printed(capsys, "next", written(tmp_path, "a.toml", table), "--outage", "2026-03-28/2026-03-28T02:00")

    assert "    fires    100, from 2026-03-28 00:01:00Z to 2026-03-28 01:40:00Z\n" in text
    assert text.endswith("    the rest fires in the housekeeping runs that follow\n")


def test_next_tells_of_entries_that_never_come(capsys: pytest.CaptureFixture[str], toml: str) -> None:
    """A moment that has passed stays in the code, and does nothing."""
    text = printed(capsys, "next", toml, "--from", "2027-01-01")

    assert ["  never"] == text.split("\n\n")[3].splitlines()[1:]


def test_next_tells_of_a_source_without_entries(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """Silence could also mean that nothing was read."""
    empty = written(tmp_path, "empty.toml", "")

    assert 0 == main(["schedules", "next", empty])
    assert f"{empty} has no entries.\n" == capsys.readouterr().out


def test_next_goes_on_after_an_entry_that_cannot_work(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """X-8: it is named on the error output, the others are told, and the exit code says so."""
    table = '[{name}]\ncron = "{cron}"\nworker = "A"\nid = 1\n'
    entries = table.format(name="bad", cron="61 * * * *") + table.format(name="good", cron="0 4 * * *")

    assert 2 == main(["schedules", "next", written(tmp_path, "a.toml", entries)])

    said = capsys.readouterr()
    assert (
        "error: Entry 'bad' of 'A': cron '61 * * * *' cannot have '61' as its minute: there are 0 to 59.\n" == said.err
    )
    assert said.out.startswith("good of A: ")


def test_a_payload_that_no_job_can_have_is_told(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """X-8: by next, which checks what would fire, and by dump; with the name of the entry."""
    path = written(tmp_path, "a.toml", '[a]\nevery = 60\nworker = "A"\nid = 1\npayload = 2026-12-31\n')

    assert [2, 2, 2] == [main(["schedules", command, path]) for command in ("next", "load", "dump")]

    lines = capsys.readouterr().err.splitlines()
    assert [True] * 3 == ["Entry 'a' of 'A': " in line and "payload" in line for line in lines]


def test_an_entry_that_is_off_is_shown_as_off(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """Its times are planned, but none of them starts a job until somebody switches it on."""
    table = '[on]\nevery = 3600\nworker = "A"\nid = 1\n[cleanup]\nevery = 60\nworker = "A"\nid = 2\nenabled = false\n'
    path, outage = written(tmp_path, "a.toml", table), "2026-10-25T01:00/2026-10-25T02:00"

    is_on, off = printed(capsys, "next", path, "-n", "1", "--outage", outage).split("\n\n")
    load = printed(capsys, "load", path, "--day", "2026-10-25")

    assert "Nobody looks" in is_on
    assert ["cleanup (off) of A: every 60, UTC: Every 1 min", "  2026-10-25 01:01:00Z"] == off.splitlines()
    assert "2026-10-25 (UTC): 24 starts in 24 minutes, by 1 entries. Off: cleanup." == load.splitlines()[0]
    assert "| cleanup |" not in load


def test_load_names_an_entry_once(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """With how often it starts in the minute."""
    table = '[five]\nevery = 5\nworker = "A"\nid = 1\n[other]\nevery = 60\nworker = "A"\nid = 2\n'

    text = printed(capsys, "load", written(tmp_path, "a.toml", table), "--day", "2026-10-25")

    assert "| 00:00 | 13 | five 12 times, other |" in text


def test_load_finds_the_fullest_minutes_and_shards(capsys: pytest.CaptureFixture[str], app: str) -> None:
    """Ids that start in one minute and lie in one shard wait for each other; jitter moves a start."""
    text = printed(capsys, "load", app, "--day", "2026-10-25T17:00")

    assert text.startswith("2026-10-25 (UTC): 29 starts in 25 minutes, by 6 entries.\n")
    assert "| 04:00 | 5 | 0, 1, 2 and 2 more |" in text
    assert "| 00:00 | 1 | hourly |" in text
    assert "| poll 0 | 1 | 04:00 | 0, 1, 2 and 2 more |" in text


def test_load_of_a_file_knows_no_shards(capsys: pytest.CaptureFixture[str], toml: str) -> None:
    """It says so."""
    text = printed(capsys, "load", toml, "--day", "2026-10-25")

    assert text.endswith("It is not known here how many shards these queues have: Close, Poll, SyncOrder.\n")


def test_a_dump_is_the_same_as_its_source(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, toml: str, app: str
) -> None:
    """X-7: what one release declared can be compared with the next, of which Redis keeps nothing."""
    path = tmp_path / "dump.json"
    for source in (toml, app):
        path.write_text(printed(capsys, "dump", source), encoding="utf-8")
        assert "" == printed(capsys, "diff", source, str(path))

    dumped = json.loads(path.read_text(encoding="utf-8"))
    assert {"poll": 1} == dumped["shards_count"]
    assert {"queue": "poll", "name": "hourly", "payload": {"full": True}}.items() <= dumped["entries"][-1].items()


def test_diff_tells_definitions_and_firings(capsys: pytest.CaptureFixture[str], tmp_path: Path, toml: str) -> None:
    """X-7: what is removed stops, what is added begins, and an expression that is only written anew changes nothing."""
    changed = ENTRIES.replace("[year]", "[last]").replace("every = 600", "every = 1200").replace('"30 2', '"30 02')
    new = written(tmp_path, "new.toml", changed)

    text = printed(capsys, "diff", toml, new, "--from", "2026-12-30", "--days", "2", code=1)

    assert [
        "added    last of Close: at 2026-12-31T23:00:00+00:00, UTC",
        "removed  year of Close: at 2026-12-31T23:00:00+00:00, UTC",
        "changed  nightly of SyncOrder: text '30 2 * * *' -> '30 02 * * *'",
        "changed  poll of Poll: text '600+30' -> '1200+30'",
        "only A   poll of Poll: 144 firings, the first 2026-12-30 00:10:30Z",
        "only A   year of Close: 1 firing, 2026-12-31 23:00:00Z",
        "only B   last of Close: 1 firing, 2026-12-31 23:00:00Z",
    ] == text.splitlines()


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["next"], "No app is named: give --app MODULE:APP"),
        (["next", "shop.txt"], "'shop.txt' names no app: expected MODULE:APP, such as shop.jobs:app."),
        (["next", "none.toml"], "none.toml cannot be read: No such file or directory in "),
        (["next", "none.json"], "none.json cannot be read: No such file or directory in "),
        (["next", "a.toml", "--from", "soon"], "--from soon is refused: 'soon' is not a moment: give "),
        (["next", "a.toml", "--from", "1999-01-01"], "--from 1999-01-01 is refused"),
        (["next", "shop.yaml"], "shop.yaml is YAML, which is not read: write a TOML file, a table for each entry."),
        (["next", "a.toml", "--outage", "2026-01-02/2026-01-01"], "the end must come after the beginning."),
        (["next", "a.toml", "--outage", "2026-01-02"], "give two moments, such as "),
        (["next", "a.toml", "--outage", "2026-01-02/x"], "--outage 2026-01-02/x is refused: 'x' is not a moment: "),
        (["next", "a.toml", "-n", "0"], "-n 0 is refused: give a whole number from 1 to 1000."),
        (["diff", "a.toml"], "B is missing: lowkiq schedules diff [OPTIONS] A B."),
    ],
)
def test_what_cannot_work_is_refused_in_a_sentence(
    capsys: pytest.CaptureFixture[str], words: list[str], sentence: str
) -> None:
    """One line on the error output, and the exit code of misuse."""
    assert 2 == main(["schedules", *words])

    assert sentence in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("[]", "is not what 'lowkiq schedules dump' writes."),
        ("{", "is not what 'lowkiq schedules dump' writes."),
        ('{"entries": [{"queue": "A"}]}', "is not what 'lowkiq schedules dump' writes."),
        ('{"entries": [{"queue": "A", "name": "a"}]}', "Entry 'a' of 'A': the text of an entry's times must be a text"),
    ],
)
def test_a_file_that_is_not_a_dump_is_refused(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, text: str, sentence: str
) -> None:
    """Its name and what is wrong with it are told."""
    path = written(tmp_path, "a.json", text)

    assert 2 == main(["schedules", "load", path])

    said = capsys.readouterr().err
    assert path in said
    assert sentence in said


def test_without_a_source_it_is_the_app_of_the_environment(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], app: str
) -> None:
    """As for every other command."""
    printed = []
    for words in ([app], []):
        monkeypatch.setenv("LOWKIQ_APP", app if not words else "")
        for command in ("next", "load", "dump"):
            assert 0 == main(["schedules", command, *words, *(["--from", "2026-01-01"] if command == "next" else [])])
        printed.append(capsys.readouterr().out)

    assert printed[0] == printed[1]


def test_the_default_is_now(capsys: pytest.CaptureFixture[str], toml: str) -> None:
    """Without a moment the planned times begin with the next, and the day is today."""
    before = SystemClock.time()
    first = printed(capsys, "next", toml, "-n", "1").split("\n\n")[2].splitlines()[1].strip()

    assert before - 1 < at(first)
    assert "starts in" in printed(capsys, "load", toml)
    assert "" == printed(capsys, "diff", toml, toml)
