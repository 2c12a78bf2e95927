"""Entries of a TOML file: the same as those of code, and errors that name file, table and key."""

from datetime import UTC, datetime
from pathlib import Path

import pytest

from lowkiq_lambda.base.errors import DeclarationError
from lowkiq_lambda.schedules.entry import new_entry
from lowkiq_lambda.schedules.times import parse_at, parse_cron, parse_every
from lowkiq_lambda.schedules.toml_entries import read_toml

FILE = """
[nightly]
cron = "0 4 * * *"
tz = "Europe/Berlin"
worker = "SyncOrder"
id = "all"
payload = { full = true }
missed = "all"
grace = 7200
overlap = "skip"
jitter = 30
description = "Each night."

[poll]
every = 600
offset = 30
worker = "Poll"
id = 7

["year 2026"]
at = 2026-12-31T23:00:00Z
worker = "Close"
id = "year"
"""


def written(folder: Path, text: str) -> Path:
    """The file with this text."""
    path = folder / "schedules.toml"
    path.write_text(text, encoding="utf-8")
    return path


def test_a_file_declares_what_code_declares(tmp_path: Path) -> None:
    """C-10, X-2: all kinds, all options, in the order of the file."""
    nightly = new_entry(
        "SyncOrder",
        parse_cron("0 4 * * *", "Europe/Berlin"),
        id="all",
        name="nightly",
        payload={"full": True},
        missed="all",
        grace=7_200,
        overlap="skip",
        jitter=30,
        description="Each night.",
    )
    poll = new_entry("Poll", parse_every(600, 30), id=7, name="poll")
    year = new_entry("Close", parse_at(datetime(2026, 12, 31, 23, tzinfo=UTC)), id="year", name="year 2026")

    assert [nightly, poll, year] == read_toml(written(tmp_path, FILE))


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (
            "[a]\ncorn = '* * * * *'",
            "Entry 'a': 'corn' is not a key of an entry: there are cron, every, at, offset, tz, ",
        ),
        ("[a]\ncron = '* * * * *'\nid = 1", "Entry 'a': worker is missing."),
        ("[a]\ncron = '* * * * *'\nworker = 'A'", "Entry 'a': id is missing."),
        ("[a]\nworker = 'A'\nid = 1", "Entry 'a': it must have one of cron, every, at; it has none."),
        ("[a]\nworker = 'A'\nid = 1\nat = 1\nevery = 1", "it must have one of cron, every, at; it has every and at."),
        ("[a]\nworker = 'A'\nid = 1\noffset = 1\ncron = '* * * * *'", "Entry 'a': offset goes with every alone."),
        ("[a]\nworker = 'A'\nid = 1\ncron = '* * *'", "Entry 'a': cron '* * *' is not an expression"),
        ("[a]\nworker = 'A'\nid = 1\nevery = 60\ntz = 'Berlin!'", "Entry 'a': tz must be the name of a time zone"),
        (
            "[a]\nworker = 'A'\nid = 1\nat = 2026-12-31T23:00:00",
            "such as 2026-12-31T23:00:00Z, not a date-time without an offset.",
        ),
        (
            "[a]\nworker = 'A'\nid = 1\nat = 2026-12-31",
            "Entry 'a': at must be a date-time with its offset, such as 2026-12-31T23:00:00Z, not a date.",
        ),
        (
            "[a]\nworker = 'A'\nid = 1\nevery = 60\ngrace = '1h'",
            "Entry 'a': grace must be a number of seconds, not a string.",
        ),
        (
            "[a]\nworker = 1\nid = 1\nevery = 60",
            "Entry 'a': worker must be a string, the name of the queue, not an integer.",
        ),
        ("[a]\nworker = 'A'\nid = [1]\nevery = 60", "Entry 'a': id must be a string or an integer, not an array."),
        ("[a]\nworker = 'A'\nid = true\nevery = 60", "Entry 'a': id must be a string or an integer, not a boolean."),
        ("[a]\nworker = 'A'\nid = 1\nevery = {s = 60}", "Entry 'a': every must be a number of seconds, not a table."),
        ("[a]\nworker = 'A'\nid = 1\nevery = nan", "Entry 'a': every must be a number of seconds, not nan."),
        ("[a]\nworker = 'A'\nid = 1\ncron = 4", "Entry 'a': cron must be a string, not an integer."),
        (
            "[a]\nworker = 'A'\nid = ''\nevery = 60",
            "Entry 'a' of 'A': id must be a text of 1 to 65,536 characters, not ''.",
        ),
        ("worker = 'A'", "'worker' is not a table: an entry begins with [worker]."),
        ("[a]\n[a]", "cannot be read: "),
        ("[a", "cannot be read: "),
        (f"[a]\nworker = 'A'\nid = 1\nevery = {'9' * 400}", "Entry 'a': every must be from 1 to 31,622,400 seconds"),
        (f"[a]\nworker = 'A'\nid = 1\nevery = {'9' * 5_000}", "cannot be read: "),
        (f"a = {'[' * 5_000}{']' * 5_000}", "cannot be read: "),
    ],
)
def test_an_error_names_file_table_and_key(tmp_path: Path, text: str, sentence: str) -> None:
    """X-8: the sentence leads to the line that has to be corrected."""
    path = written(tmp_path, text)

    with pytest.raises(DeclarationError) as refused:
        read_toml(path)

    assert str(path) in str(refused.value)
    assert sentence in str(refused.value)


def test_a_file_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    """Nothing would fire otherwise, and nobody would know."""
    with pytest.raises(DeclarationError, match="cannot be read: No such file or directory"):
        read_toml(tmp_path / "schedules.toml")


def test_a_relative_path_is_told_with_the_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever starts the process elsewhere sees why."""
    monkeypatch.chdir(tmp_path)
    with pytest.raises(DeclarationError) as refused:
        read_toml(Path("schedules.toml"))

    assert f"schedules.toml cannot be read: No such file or directory in {tmp_path}." == str(refused.value)


def test_a_path_that_is_no_text_is_told(tmp_path: Path) -> None:
    """The sentence can be printed anywhere."""
    with pytest.raises(DeclarationError) as refused:
        read_toml(tmp_path / "\ud800.toml")

    assert "\\ud800.toml cannot be read: " in str(refused.value)
    assert str(refused.value).encode()
