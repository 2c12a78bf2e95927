"""Why a job is not running, answered for every situation that it can be in."""

import math
from typing import Any

import msgspec
import pytest

from lowkiq_lambda.jobs.job import ProgressView
from lowkiq_lambda.operate.presentation.diagnosis import Diagnosis, diagnose
from lowkiq_lambda.views.jobs import JobExplanation
from lowkiq_lambda.views.shards import ShardDetails

NOW = 1_800_000_000.0
FREE = ShardDetails(index=3, at=NOW, length=9, owner="box:7", token=5, acquired_at=NOW - 5.0)
HELD = msgspec.structs.replace(FREE, held_until=NOW + 20.0, acquired_at=NOW - 90.0, in_flight=4)
DIED = msgspec.structs.replace(FREE, held_until=NOW - 30.0, acquired_at=NOW - 120.0, in_flight=4)
QUIET = msgspec.structs.replace(FREE, acquired_at=NOW - 7_200.0)
BUSY_ELSEWHERE = msgspec.structs.replace(FREE, acquired_at=NOW - 50.0)
UNSEEN = ShardDetails(index=3, at=NOW, length=9)
PAUSED = msgspec.structs.replace(QUIET, paused_until=NOW + 600.0)
STOPPED = msgspec.structs.replace(QUIET, paused_until=math.inf)
WOKEN = msgspec.structs.replace(QUIET, woken_until=NOW + 8.0)
CLOSED = msgspec.structs.replace(FREE, role="closed")
LET_GO = msgspec.structs.replace(HELD, gave_up=True)
DUE, LATER = NOW - 60.0, NOW + 300.0
STARTED = ProgressView(cursor=5, items=5)
PUT_OFF = ProgressView(cursor=5, items=5, interruptions=1, reason="the database is behind.")

CASES: dict[str, tuple[dict[str, Any], str, str, float | None]] = {
    "unknown": ({"shard": FREE}, "unknown", "never pushed", None),
    "in the morgue": ({"shard": FREE, "dead_since": NOW - 3_600}, "in the morgue", "in the morgue for 1h", None),
    "in flight": (
        {"shard": HELD, "in_flight": True},
        "in flight",
        "box:7 has held its shard for 1m 30s and has claimed 4 ids",
        None,
    ),
    "in flight, fenced": (
        {"shard": LET_GO, "in_flight": True},
        "fenced",
        "which was evicted or gave up. The lease ends in 20 s; then the next drain of the shard recovers it.",
        NOW + 20,
    ),
    "in flight, holder died": (
        {"shard": DIED, "in_flight": True},
        "holder died",
        "box:7, left without settling it (its lease ended 30 s ago)",
        None,
    ),
    "due later": ({"shard": HELD, "due_at": LATER}, "due later", "waits for another 5m", LATER),
    "head blocked": (
        {"shard": FREE, "due_at": 253_402_300_800.0, "retry_count": 3.0, "blocked_since": NOW - 7_200},
        "head blocked",
        "has been blocked for 2h, and all payloads of its id wait behind it",
        None,
    ),
    "debouncing": (
        {"shard": HELD, "due_at": LATER, "debounced_until": LATER + 600},
        "debouncing",
        "is due in 5m, or later if another push comes, but in 15m at the latest",
        LATER,
    ),
    "retry later": (
        {"shard": FREE, "due_at": LATER, "retry_count": 1.0},
        "retry later",
        "failed twice and will be retried in 5m",
        LATER,
    ),
    "paused": ({"shard": PAUSED, "due_at": DUE}, "paused", "paused for another 10m; it is due", NOW + 600),
    "paused for longer than it waits": (
        {"shard": PAUSED, "due_at": LATER},
        "paused",
        "another 10m; it is due in 5m",
        NOW + 600,
    ),
    "due after the pause": ({"shard": PAUSED, "due_at": NOW + 900}, "due later", "another 15m", NOW + 900),
    "paused for good": ({"shard": STOPPED, "due_at": DUE}, "paused", "until an operator resumes it", None),
    "held": (
        {"shard": HELD, "due_at": DUE, "ahead": 3},
        "held",
        "held by box:7 for 1m 30s, and it waits behind 3 others",
        None,
    ),
    "held, it is next": ({"shard": HELD, "due_at": DUE}, "held", "it is next", None),
    "fenced": (
        {"shard": LET_GO, "due_at": DUE},
        "held",
        "Redis rejects the writes of the holder, box:7, which was evicted or gave up. The lease ends in 20 s",
        NOW + 20,
    ),
    "suspect": (
        {"shard": HELD, "due_at": LATER, "suspects_ahead": 2},
        "suspect",
        "it waits behind 2 other suspects",
        None,
    ),
    "suspect of a free shard": (
        {"shard": FREE, "due_at": DUE, "suspects_ahead": 1},
        "suspect",
        "been due for 1m. box:7 acquired its shard",
        None,
    ),
    "behind suspects": (
        {"shard": msgspec.structs.replace(FREE, suspects=2), "due_at": DUE, "ahead": 1_200},
        "behind others",
        "No drain has acquired it since",
        None,
    ),
    "behind others": (
        {"shard": FREE, "due_at": DUE, "ahead": 1},
        "behind others",
        "box:7 acquired its shard 5.0 s ago and released it. No drain has acquired it since",
        None,
    ),
    "next": (
        {"shard": BUSY_ELSEWHERE, "due_at": NOW - 48},
        "next",
        "been due for 48 s, and no drain has acquired its shard since",
        None,
    ),
    "holder died": (
        {"shard": DIED, "due_at": DUE},
        "holder died",
        "box:7, left with 4 ids in flight (its lease ended 30 s ago)",
        None,
    ),
    "woken": ({"shard": WOKEN, "due_at": DUE}, "woken", "a drain was just started", NOW + 8),
    "not drained": (
        {"shard": QUIET, "due_at": DUE},
        "not drained",
        "been due for 1m, and no drain has acquired its shard since",
        None,
    ),
    "nobody ever drained": (
        {"shard": UNSEEN, "due_at": DUE},
        "not drained",
        "no drain has ever acquired its shard",
        None,
    ),
    "goes on later": (
        {"shard": FREE, "due_at": NOW + 12, "progress": PUT_OFF},
        "goes on later",
        "It is started, and goes on in 12 s: the database is behind.",
        NOW + 12,
    ),
    "goes on later, without a reason": (
        {"shard": FREE, "due_at": LATER, "progress": STARTED},
        "goes on later",
        "It is started, and goes on in 5m.",
        LATER,
    ),
    "started and failed": (
        {"shard": FREE, "due_at": LATER, "retry_count": 0.0, "progress": PUT_OFF},
        "retry later",
        "failed once and will be retried in 5m",
        LATER,
    ),
    "started and due": (
        {"shard": BUSY_ELSEWHERE, "due_at": NOW - 48, "progress": STARTED},
        "next",
        "due for",
        None,
    ),
    "closed by a move": ({"shard": CLOSED, "due_at": DUE}, "moving", "gets another number of shards", None),
    "closed by a move, due later": ({"shard": CLOSED, "due_at": LATER}, "due later", "it is not due yet", LATER),
    "closed": ({"shard": FREE, "due_at": DUE, "closed": True}, "closed", "its shard is closed", None),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_the_answer_is_a_sentence(case: tuple[dict[str, Any], str, str, float | None]) -> None:
    """Of the right kind, with what it is made of, and the next moment at which something is to be expected."""
    fields, kind, words, next_at = case

    answer = diagnose(JobExplanation(**fields), 1)

    assert kind == answer.kind
    assert words.lower() in answer.sentence.lower()
    assert answer.sentence.endswith(".")
    assert next_at == answer.next_at


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"shard": HELD, "in_flight": True, "due_at": DUE}, "More payloads wait under this id"),
        ({"shard": HELD, "due_at": DUE}, "The lease ends in 20 s unless"),
        ({"shard": HELD, "in_flight": True}, "The lease ends in 20 s unless"),
        ({"shard": HELD, "in_flight": True, "progress": STARTED}, "its progress at its last checkpoint"),
        ({"shard": FREE, "due_at": LATER, "progress": PUT_OFF}, "It goes on from its cursor"),
        ({"shard": FREE, "due_at": DUE, "suspects_ahead": 0}, "it runs alone, before jobs"),
        (
            {"shard": FREE, "due_at": DUE, "suspects_ahead": 0, "crash_count": 2},
            "The process was lost twice while one of its payloads ran alone",
        ),
        ({"shard": FREE, "due_at": DUE, "dead_since": NOW - 90}, "of this id died 1m 30s ago"),
        ({"shard": FREE, "due_at": DUE, "least_version": 4}, "contract version 4 or newer"),
        ({"shard": UNSEEN, "due_at": DUE, "ahead": 2}, "In the next drain it waits behind 2 others."),
        ({"shard": QUIET, "due_at": DUE, "ahead": 1}, "In the next drain it waits behind 1 other."),
        (
            {"shard": msgspec.structs.replace(FREE, suspects=2), "due_at": DUE, "ahead": 1_200},
            "behind 1,200 others, 2 of them suspects",
        ),
        (
            {"shard": FREE, "due_at": DUE, "suspects_ahead": 1},
            "it waits behind 1 other suspect.",
        ),
        ({"shard": QUIET, "due_at": DUE}, "box:7 acquired it last, 2h ago."),
        (
            {"shard": msgspec.structs.replace(BUSY_ELSEWHERE, held_until=NOW - 20), "due_at": NOW - 48},
            "box:7 acquired it last, 50 s ago (its lease ended 20 s ago).",
        ),
        ({"shard": BUSY_ELSEWHERE, "due_at": NOW - 48}, "are busy with other shards"),
        (
            {"shard": msgspec.structs.replace(DIED, held_until=NOW - 600), "in_flight": True},
            "No drain has acquired the shard for 2m",
        ),
        (
            {"shard": msgspec.structs.replace(DIED, paused_until=math.inf), "in_flight": True},
            "until an operator resumes",
        ),
    ],
)
def test_what_else_is_to_be_said(fields: dict[str, Any], words: str) -> None:
    """Beside the sentence."""
    assert words in " ".join(diagnose(JobExplanation(**fields), 1).more)


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"shard": HELD, "in_flight": True, "suspects_ahead": 0}, "It is a suspect: its process died"),
        ({"shard": FREE, "due_at": DUE, "suspects_ahead": 0}, "side by side with the other suspects"),
        ({"shard": FREE, "due_at": DUE, "suspects_ahead": 0}, "In the next drain it is next."),
        (
            {"shard": FREE, "due_at": DUE, "suspects_ahead": 2},
            "it waits behind 2 other suspects, but runs together with them.",
        ),
        ({"shard": DIED, "in_flight": True}, "Then it runs once more, side by side with the other jobs"),
        ({"shard": DIED, "in_flight": True, "suspects_ahead": 0}, "so from now on it runs alone."),
    ],
)
def test_what_a_first_crash_left_runs_together(fields: dict[str, Any], words: str) -> None:
    """P6: where batches run side by side it is told beside what it runs, and what a second crash would mean."""
    situation = JobExplanation(**fields, runs_together=True)

    assert words in " ".join(diagnose(situation, 20).more)
    assert "side by side" not in " ".join(diagnose(situation, 1).more)
    alone = " ".join(diagnose(msgspec.structs.replace(situation, runs_together=False), 20).more)
    assert "side by side" not in alone


def test_a_job_that_is_due_for_a_moment_is_no_reason_to_look_for_causes() -> None:
    """Each job is due for a moment before somebody takes it."""
    more = diagnose(JobExplanation(shard=BUSY_ELSEWHERE, due_at=NOW - 1), 1).more

    assert not any("busy with other shards" in one for one in more)
    assert any("it is next" in one for one in more)


def test_every_situation_has_an_answer() -> None:
    """Whatever comes together."""
    shards = [FREE, HELD, DIED, QUIET, UNSEEN, PAUSED, STOPPED, WOKEN, LET_GO]
    situations = [
        JobExplanation(
            shard=shard,
            due_at=due_at,
            in_flight=in_flight,
            retry_count=retry_count,
            suspects_ahead=suspects_ahead,
            dead_since=dead_since,
            progress=progress,
            runs_together=runs_together,
        )
        for shard in shards
        for due_at in (None, DUE, LATER)
        for in_flight in (False, True)
        for retry_count in (-1.0, 0.0)
        for suspects_ahead in (None, 0, 1)
        for dead_since in (None, DUE)
        for progress in (None, PUT_OFF)
        for runs_together in (False, True)
    ]
    assert all(isinstance(diagnose(situation, 20), Diagnosis) for situation in situations)
