"""Entries: what is refused, and the forms in which they are kept."""

import json
from collections.abc import Mapping
from datetime import timedelta
from typing import Any, Final
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lowkiq_lambda.base.errors import DeclarationError
from lowkiq_lambda.schedules.entry import EntryOptions, ScheduleEntry, new_entry
from lowkiq_lambda.schedules.times import Times, parse_at, parse_cron, parse_every
from tests.schedules.moments import at

NIGHTLY: Final = parse_cron("0 4 * * *", "Europe/Berlin")
DEFINITION: Final[Mapping[str, Any]] = {
    "kind": "cron",
    "text": "0 4 * * *",
    "tz": "Europe/Berlin",
    "id": "nightly",
    "payload": "",
    "missed": "once",
    "grace": 3_600.0,
    "overlap": "merge",
    "jitter": 0.0,
    "description": "",
}


def entry(times: Times = NIGHTLY, **options: Any) -> ScheduleEntry:
    """An entry of one queue."""
    return new_entry("SyncOrder", times, id="nightly", **options)


def test_an_entry_takes_what_its_declaration_leaves_out() -> None:
    """X-1: the name is the id's text; a planned time of the last hour fires late; nothing is spread."""
    found = entry()

    assert ScheduleEntry(queue_name="SyncOrder", name="nightly", times=NIGHTLY, id="nightly") == found
    assert ("once", 3_600.0, "merge", 0.0, "Europe/Berlin") == (
        found.missed,
        found.grace,
        found.overlap,
        found.jitter,
        found.tz,
    )


@pytest.mark.parametrize(("given_id", "text"), [(7, "7"), (UUID(int=0), "00000000-0000-0000-0000-000000000000")])
def test_an_id_is_what_a_job_may_have(given_id: object, text: str) -> None:
    """A whole number or a UUID is its text, as in a push, and names the entry too."""
    found = new_entry("SyncOrder", NIGHTLY, id=given_id)

    assert (text, text) == (found.id, found.name)


def test_lengths_of_time_may_be_timedeltas() -> None:
    """Grace and jitter, as a period may."""
    found = entry(grace=timedelta(hours=2), jitter=timedelta(minutes=1))

    assert (7_200.0, 60.0) == (found.grace, found.jitter)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"grace": 30}, "grace must be from 60 to 31,622,400 seconds, not 30.0."),
        ({"grace": "1h"}, "grace must be a timedelta or a number of seconds, not '1h'."),
        ({"jitter": -1}, "jitter must be from 0 to 86,400 seconds, not -1.0."),
        ({"jitter": float("nan")}, "jitter must be a timedelta or a number of seconds, not nan."),
        ({"jitter": -(10**400)}, "jitter must be from 0 to 86,400 seconds, not -inf."),
        ({"missed": "never"}, "missed must be one of once, skip, all, not 'never'."),
        ({"overlap": "queue"}, "overlap must be one of merge, skip, not 'queue'."),
        ({"overlap": ["skip"]}, "overlap must be one of merge, skip, not ['skip']."),
        ({"jitter": True}, "jitter must be a timedelta or a number of seconds, not True."),
        (
            {"colour": "red"},
            (
                "'colour' is not an option of it: there are name, tz, payload, missed, grace, overlap, jitter, "
                "expires_in, enabled, description."
            ),
        ),
        ({"enabled": 1}, "enabled must be True or False, not 1."),
        ({"description": None}, "description must be a text of 0 to 1,000 characters, not None."),
    ],
)
def test_a_field_that_cannot_work_is_named(options: EntryOptions, sentence: str) -> None:
    """X-8: the sentence has the entry, the field and the value."""
    with pytest.raises(DeclarationError) as refused:
        entry(**options)

    assert f"Entry 'nightly' of 'SyncOrder': {sentence}" == str(refused.value)


@pytest.mark.parametrize("name", ["", "a\nb", "\ud800", "x" * 201, 7])
def test_a_name_can_be_printed(name: Any) -> None:
    """It stands in logs, on pages and in addresses."""
    with pytest.raises(DeclarationError, match="name must"):
        entry(name=name)


@pytest.mark.parametrize("job_id", [1.5, None, "\ud800", b"a"])
def test_an_id_that_no_job_can_have_is_refused(job_id: object) -> None:
    """When the entry is declared, and not when it fires first."""
    with pytest.raises(DeclarationError, match="id "):
        new_entry("SyncOrder", NIGHTLY, id=job_id)


def test_an_error_does_not_repeat_a_value_of_any_size() -> None:
    """A sentence stays one that a log can print."""
    for options in ({"description": "x" * 10_000}, {"missed": 10**5_000}, {"name": "x" * 10_000}):
        with pytest.raises(DeclarationError) as refused:
            entry(**options)
        assert 700 > len(str(refused.value))


def test_the_id_is_named_before_the_name_that_it_gives() -> None:
    """Nobody has given a name."""
    with pytest.raises(DeclarationError, match="id must be a text of 1 to"):
        new_entry("SyncOrder", NIGHTLY, id="")


def test_a_check_names_the_entry() -> None:
    """It evaluates what a declaration takes on trust."""
    with pytest.raises(DeclarationError) as refused:
        entry(parse_cron("61 4 * * *")).check()
    entry().check()

    sentence = "Entry 'nightly' of 'SyncOrder': cron '61 4 * * *' cannot have '61' as its minute: there are 0 to 59."
    assert sentence == str(refused.value)


def test_a_definition_has_all_but_queue_and_name() -> None:
    """X-24: what a schedule of the run time stores, and no more."""
    assert DEFINITION == entry().definition()
    assert {**DEFINITION, "expires_in": 50.0} == entry(expires_in=50.0).definition()


@settings(deadline=None)
@given(
    times=st.sampled_from([NIGHTLY, parse_every(600, 30), parse_at(at("2026-12-31 23:00"), "Asia/Tokyo")]),
    payload=st.recursive(st.none() | st.booleans() | st.integers() | st.text(), st.lists),
    missed=st.sampled_from(["once", "skip", "all"]),
    grace=st.floats(60.0, 1e6),
    jitter=st.floats(0.0, 1e3),
    expires_in=st.none() | st.floats(1.0, 1e6),
)
def test_an_entry_comes_back_from_the_json_of_its_definition(times: Times, **options: Any) -> None:
    """Whatever it holds."""
    found = entry(times, overlap="skip", description="Each night.", **options)

    definition = json.loads(json.dumps(found.definition()))

    assert found == ScheduleEntry.from_definition("SyncOrder", "nightly", definition)


def test_a_definition_of_a_later_version_is_read() -> None:
    """Fields that this version does not know are passed over, and those that it misses are as by default."""
    definition = {"kind": "every", "text": "600", "id": "poll", "colour": "red"}

    found = ScheduleEntry.from_definition("SyncOrder", "poll", definition)

    assert new_entry("SyncOrder", parse_every(600), id="poll") == found


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"kind": "yearly"}, "the kind of an entry's times must be cron, every or at, not 'yearly'."),
        ({"id": 7}, "id must be a text of 1 to 65,536 characters, not 7."),
        ({"grace": None}, "grace must be a timedelta or a number of seconds"),
        ({"tz": 1}, "tz must be the name of a time zone"),
    ],
)
def test_a_definition_that_cannot_work_is_refused(change: Mapping[str, object], sentence: str) -> None:
    """A sentence that names the entry, and no traceback of whoever reads it."""
    with pytest.raises(DeclarationError) as refused:
        ScheduleEntry.from_definition("SyncOrder", "nightly", {**DEFINITION, **change})

    assert str(refused.value).startswith(f"Entry 'nightly' of 'SyncOrder': {sentence}")


def test_jitter_is_the_same_for_all_who_ask() -> None:
    """It spreads entries of one time, stays within its bounds, and a firing that is repeated gets the same."""
    spread = [entry(name=f"e{number}", jitter=60).jitter_of(at("2026-01-01 04:00")) for number in range(200)]

    assert spread == [entry(name=f"e{number}", jitter=60).jitter_of(at("2026-01-01 04:00")) for number in range(200)]
    assert len({*spread}) > 190
    assert 0.0 <= min(spread) < 10.0
    assert 50.0 < max(spread) < 60.0
    assert 0.0 == entry().jitter_of(at("2026-01-01 04:00"))
