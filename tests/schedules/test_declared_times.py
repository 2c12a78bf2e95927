"""Entries of code whose times can never come are refused where they are declared."""

from datetime import timedelta
from pathlib import Path

import pytest

from lowkiq_lambda import DeclarationError, Lowkiq
from lowkiq_lambda.schedules import zones
from tests.kit.handlers import Notes
from tests.kit.workers import declare


@pytest.fixture
def app() -> Lowkiq:
    """It needs no server to declare."""
    return Lowkiq()


@pytest.mark.parametrize(
    ("expression", "tz", "sentence"),
    [
        ("0 25 * * *", "UTC", "cannot have '25' as its hour: there are 0 to 23."),
        ("0 0 31 2 *", "UTC", "cron '0 0 31 2 *' never comes: February has no 31st."),
        (
            "0 4 * * *",
            "Europe/Berln",
            "'Europe/Berln' is not a time zone that is known here: did you mean 'Europe/Berlin'?",
        ),
    ],
)
def test_a_nightly_job_that_would_never_run_is_refused(app: Lowkiq, expression: str, tz: str, sentence: str) -> None:
    """The error names the entry and what is wrong; the app of a daemon, a function or a test does not start with it."""
    worker = declare(app, "orders", Notes())

    with pytest.raises(DeclarationError) as refused:
        app.cron(expression, worker, id="nightly", tz=tz)

    assert str(refused.value).startswith("Entry 'nightly' of 'orders': ")
    assert sentence in str(refused.value)
    assert [] == app.schedules.declared


def test_a_file_of_entries_is_judged_as_code_is(app: Lowkiq, tmp_path: Path) -> None:
    """A TOML file is refused for the same entry."""
    declare(app, "orders", Notes())
    file = tmp_path / "schedules.toml"
    file.write_text('[nightly]\nworker = "orders"\nid = 1\ncron = "0 25 * * *"\n')

    with pytest.raises(DeclarationError, match=r"Entry 'nightly' of 'orders': .* cannot have '25' as its hour"):
        app.entries_from(file)


def test_a_zone_of_a_period_is_looked_up_too(app: Lowkiq) -> None:
    """It is the zone in which people are shown its times."""
    with pytest.raises(DeclarationError, match="did you mean 'Asia/Tokyo'"):
        app.every(timedelta(hours=1), declare(app, "orders", Notes()), id="poll", tz="Asia/Tokio")


def test_a_machine_without_zones_takes_their_names_on_trust(app: Lowkiq, monkeypatch: pytest.MonkeyPatch) -> None:
    """It cannot know better; one that finds zones in an unusual place looks there."""
    monkeypatch.setattr(zones, "_USUAL_FOLDER", "/nowhere")
    worker = declare(app, "orders", Notes())
    app.cron("0 4 * * *", worker, id="known", tz="Europe/Berlin")
    with pytest.raises(DeclarationError, match="did you mean 'Europe/Berlin'"):
        app.cron("0 4 * * *", worker, id="unknown", tz="Europe/Berln")
    monkeypatch.setattr("zoneinfo.available_timezones", set)
    app.cron("0 4 * * *", worker, id="trusted", tz="Europe/Berln")

    assert ["known", "trusted"] == [entry.name for entry in app.schedules.declared]
