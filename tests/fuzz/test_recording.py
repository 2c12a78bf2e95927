"""A recording of production as input of a fuzz."""

import json
from pathlib import Path
from random import Random
from typing import Any

import pytest

from lowkiq_lambda import ConfigError
from lowkiq_lambda.testing import AppUnderTest, recorded
from lowkiq_lambda.testing.fuzz.options import all_options
from lowkiq_lambda.testing.fuzz.plan import DrainStep, PushStep
from lowkiq_lambda.testing.fuzz.recording import RecordedPush, RecordedPushes
from lowkiq_lambda.testing.fuzz.run import fuzz
from tests.fuzz import planted
from tests.fuzz.fuzzing import options_of

LATE = [("7", "paid", 30.0, 0.0), ("8", "new", 5.0, 0.1), ("7", "new", 20.0, 4.0), ("8", "sent", 6.0, 0.0)]
"""A version of id 7 comes late, after a pause."""


def _written(path: Path, pushes: Any) -> Path:
    records = [
        {"id": id, "payload": {"status": status}, "score": score, "after": after} for id, status, score, after in pushes
    ]
    path.write_text("".join(f"{json.dumps(record)}\n" for record in records))
    return path


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A recording."""
    return _written(tmp_path / "orders.jsonl", LATE)


def test_scenarios_are_drawn_from_a_recording(file: Path) -> None:
    """Ids, payloads, scores and their order are as they were, and a drain stands in each pause."""
    recording = recorded(file)
    pushes = {(one.id, one.score): one.after for one in recording._pushes}
    plans = [tuple(recording.steps(Random(seed), 2)) for seed in range(60)]

    assert [{"status": "new"}, {"status": "paid"}, {"status": "sent"}] == recording.payloads
    for plan in plans:
        drawn = [step for step in plan if isinstance(step, PushStep)]
        numbers = [[*pushes].index((step.id, step.score)) for step in drawn]
        assert numbers == [*range(numbers[0], numbers[0] + len(drawn))]
        assert isinstance(plan[-1], DrainStep)
    assert (
        PushStep("7", 1, 30.0),
        PushStep("8", 0, 5.0),
        DrainStep(),
        PushStep("7", 0, 20.0),
        DrainStep(),
    ) in plans
    one_id = {tuple(recording.steps(Random(seed), 1)) for seed in range(60)}
    assert (PushStep("7", 1, 30.0), DrainStep(), PushStep("7", 0, 20.0), DrainStep()) in one_id


def test_a_fuzz_of_a_recording(lowkiq: AppUnderTest, file: Path) -> None:
    """It has payloads of the worker's type, finds what made up payloads find, and its plan replays without the file."""
    options = options_of("LastWins", payloads=recorded(file), faults=())
    report = fuzz(lowkiq.app, lowkiq.clock, planted.LastWins, options)

    [finding] = report.findings
    assert "late" == finding.fault_class
    assert "push id '7': Status(status=" in finding.story[0]
    again = fuzz(lowkiq.app, lowkiq.clock, planted.LastWins, options_of("LastWins", plan=finding.plan))
    assert finding.story == again.findings[0].story


def test_random_scenarios_of_a_recording(lowkiq: AppUnderTest, file: Path) -> None:
    """A mended handler passes them, with faults; two runs are equal."""
    options = options_of("LastWinsMended", payloads=recorded(file), scenarios=20, faults=["after_handler"])
    first, second = (fuzz(lowkiq.app, lowkiq.clock, planted.LastWinsMended, options) for _ in range(2))

    assert ([], 20) == (first.findings, first.scenarios)
    assert first.digest == second.digest
    assert first.faults["after_handler"] > 0


def test_a_recording_in_the_project_file(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`recorded:` and the file's name, from the folder of pyproject.toml."""
    (file.parent / "pyproject.toml").write_text('[tool.lowkiq.fuzz.LastWins]\npayloads = "recorded:orders.jsonl"\n')
    (file.parent / "tests").mkdir()
    monkeypatch.chdir(file.parent / "tests")

    payloads = all_options(planted.LastWins, {})["payloads"]

    assert isinstance(payloads, RecordedPushes)
    assert ["7", "8"] == payloads.ids


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (None, "The recording cannot be read from "),
        ("\n", " is empty."),
        ('{"id": "1", "payload": 1, "score": 1}\n{"id": "1", "payload": "secret"}', ", line 2, is not a push: "),
    ],
)
def test_a_file_that_is_no_recording_is_refused(tmp_path: Path, text: str | None, sentence: str) -> None:
    """With its line, and without what is in it."""
    path = tmp_path / "orders.jsonl"
    if text is not None:
        path.write_text(text)

    with pytest.raises(ConfigError) as error:
        recorded(path)

    assert sentence in str(error.value)
    assert "secret" not in str(error.value)


def test_payloads_of_another_type_are_refused(lowkiq: AppUnderTest) -> None:
    """As they are no longer what the worker declares."""
    recording = RecordedPushes([RecordedPush("1", {"status": "lost"}, 1.0)])

    with pytest.raises(ConfigError, match="A recorded payload is not of the worker's type"):
        lowkiq.fuzz(planted.LastWins, **options_of("LastWins", payloads=recording))
