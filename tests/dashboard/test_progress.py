"""How far started jobs have come, on the pages and in the API."""

import re
from collections import Counter
from typing import Any

import msgspec
import pytest

from lowkiq_lambda import Lowkiq
from lowkiq_lambda.jobs.progress import JobProgress
from lowkiq_lambda.store.shard.codec import dump_json
from lowkiq_lambda.testing import ManualClock
from tests.dashboard.conftest import MakeBrowser
from tests.kit.started import Starter, put_off
from tests.kit.web import Browser

HOSTILE = "</pre><script>alert(1)</script>\u202e<b>"
WORDS = "61,204 of 100,000 items, 3 interruptions (last: out of time), 1 failure, 3m 32s of work, about 2m 15s left"


def progress(cursor: Any = ("eu", 61_204), reason: str = "out of time", total: int | None = 100_000) -> JobProgress:
    """A job that has done most of its work."""
    return JobProgress(
        cursor=dump_json(cursor),
        items=61_204,
        failures=1,
        interruptions=3,
        seconds=212.5,
        started_at=1_800_000_000.0,
        total=total,
        reason=reason,
    )


def start(app: Lowkiq, worker: Any, kept: JobProgress | bytes, when: float | None = None) -> None:
    """Job 7 is started, and waits."""
    worker.push_many([{"id": 7, "payload": {"file": "prices.csv"}}])
    put_off(app, worker, "7", kept, when)


def path(page: str, worker: Any) -> str:
    """The address of a page, or of an operation of the API."""
    job = "&id=7" if page in {"job", "api/v1/job"} else ""
    return f"/{page}?queue={worker.queue_name}{job}"


def told_of(browser: Browser, worker: Any) -> Any:
    """What the API says of the job."""
    return browser.get(path("api/v1/job", worker)).json


def test_the_page_of_a_started_job_shows_its_progress(app: Lowkiq, worker: Any, browser: Browser) -> None:
    """A bar that programs can read, the numbers in words, the start, and the cursor."""
    start(app, worker, progress())
    answer = browser.get(path("job", worker))

    assert f"{WORDS}, started 2027-01-15 08:00:00 UTC" in answer.words
    assert '["eu",61204]' in answer.words
    assert '<progress max="100000" value="61204" aria-label="Items, waiting">' in answer.text
    assert "It goes on from its cursor. Newer payloads" in answer.words


def test_a_job_that_expects_no_number_of_items_has_no_bar(app: Lowkiq, worker: Any, browser: Browser) -> None:
    """Without a total, or with one that makes no sense, the page shows the number of items alone."""
    for total, words in ((None, "61,204 items, 3"), (0, "61,204 of 0 items"), (-5, "61,204 of -5 items")):
        start(app, worker, progress(total=total))
        answer = browser.get(path("job", worker))
        assert words in answer.words
        assert "<progress" not in answer.text


def test_lists_mark_started_jobs(app: Lowkiq, worker: Any, browser: Browser, clock: ManualClock) -> None:
    """A badge with the number of items, beside the retry where the job has failed; shards count them."""
    start(app, worker, progress())
    waiting, shards = browser.get(path("waiting", worker)), browser.get(path("shards", worker))
    assert "started 61.2K of 100K items" in waiting.words
    assert f'title="{WORDS}"' in waiting.text
    assert "fresh" not in waiting.words
    assert "1 1 started" in shards.words

    holder = Starter(app, worker, "7", progress(total=None))
    assert "started 61.2K items" in browser.get(path("processing", worker)).words
    assert "below is its progress at its last checkpoint" in browser.get(path("job", worker)).words
    holder.fail(clock.time() + 60)
    assert "retry 1 started 61.2K items" in browser.get(path("waiting", worker)).words

    app.operate(worker).waiting.kill(everything=True)
    assert "started 61.2K items" in browser.get(path("morgue", worker)).words
    assert '["eu",61204]' in browser.get(path("job", worker)).words


def test_pages_without_started_jobs_show_nothing_of_them(worker: Any, browser: Browser) -> None:
    """Nothing is shown to those who do not use it."""
    worker.push_many([{"id": 7}, {"id": 7, "payload": 2}])
    for page in ("waiting", "processing", "morgue", "shards", "job"):
        answer = browser.get(path(page, worker))
        assert "started" not in answer.words
        assert "Progress" not in answer.words


def test_a_job_that_asked_to_go_on_later_says_why(
    app: Lowkiq, worker: Any, browser: Browser, clock: ManualClock
) -> None:
    """The reason that the job gave is the answer to why it does not run."""
    start(app, worker, progress(reason="the database is behind"), clock.time() + 12)
    sentence = "It is started, and goes on in 12 s: the database is behind."

    assert sentence in browser.get(path("job", worker)).words
    assert sentence == told_of(browser, worker)["why"]


def test_the_api_tells_the_progress(app: Lowkiq, worker: Any, browser: Browser) -> None:
    """One job and lists of jobs have it, with null where there is none."""
    start(app, worker, progress())
    worker.push_many([{"id": 8}])
    told = {
        "cursor": ["eu", 61_204],
        "items": 61_204,
        "total": 100_000,
        "interruptions": 3,
        "failures": 1,
        "seconds": 212.5,
        "started_at": 1_800_000_000.0,
        "reason": "out of time",
        "fraction": 0.61204,
    }

    assert told == told_of(browser, worker)["waiting"]["progress"]
    jobs = browser.get(f"/api/v1/waiting/range_by_due_at?queue={worker.queue_name}").json["jobs"]
    assert {"7": told, "8": None} == {job["id"]: job["progress"] for job in jobs}


def test_numbers_tell_of_started_jobs(app: Lowkiq, worker: Any, browser: Browser) -> None:
    """The API and the metrics for Prometheus have the number of started jobs and of checkpoints."""
    start(app, worker, progress())
    (queue,) = browser.get("/api/v1/queues").json["queues"]
    (shard,) = browser.get(f"/api/v1/shards?queue={worker.queue_name}").json["shards"]
    metrics = browser.get("/metrics").text

    assert (1, 1, 1) == (queue["started"], queue["checkpointed"], shard["started"])
    assert f'lowkiq_queue_started{{queue="{worker.queue_name}"}} 1\n' in metrics
    assert f'lowkiq_queue_checkpointed_total{{queue="{worker.queue_name}"}} 1\n' in metrics


@pytest.mark.parametrize(
    "cursor",
    [
        HOSTILE,
        {HOSTILE: [HOSTILE] * 10},
        "\0\x1b[2J",
        "x" * 65_000,
        [[[[]]]] * 9_000,
        '"' * 30_000,
        "\U0001f600" * 9_000,
    ],
    ids=["markup", "markup in keys", "control", "64 KiB", "brackets", "quotation marks", "emoji"],
)
def test_a_cursor_breaks_no_page(app: Lowkiq, worker: Any, browser: Browser, cursor: Any) -> None:
    """It is text of a bounded length; the API has all of it."""
    start(app, worker, progress(cursor, reason=HOSTILE))
    plain = Counter(re.findall(r"<\w+", browser.get(path("shards", worker)).text))
    for page in ("waiting", "job"):
        answer = browser.get(path(page, worker))
        assert 200 == answer.status
        assert HOSTILE not in answer.text
        assert "\u202e" not in answer.text
        assert plain["<script"] == len(re.findall(r"<script", answer.text))
        assert len(answer.text) < 60_000
    assert cursor == told_of(browser, worker)["waiting"]["progress"]["cursor"]
    (shown,) = re.findall(r'aria-label="Cursor, waiting">([^<]*)<', browser.get(path("job", worker)).text)
    assert (len(dump_json(cursor)) > 2_000) == ("of the cursor" in browser.get(path("job", worker)).words)
    assert shown


@pytest.mark.parametrize(
    "kept",
    [
        b"\xc1<b>",
        b"\xff" * 70_000,
        msgspec.msgpack.encode([rb'"\ud800"', 1, 1]),
        msgspec.msgpack.encode([b"1", 1, 1, 0, 0, 0, float("nan")]),
    ],
    ids=["no msgpack", "64 KiB", "a surrogate", "nan"],
)
def test_a_progress_that_cannot_be_read_says_so(app: Lowkiq, worker: Any, browser: Browser, kept: bytes) -> None:
    """Pages and API go on with the rest."""
    start(app, worker, kept)
    job, listed = browser.get(path("job", worker)), browser.get(path("waiting", worker))

    assert 200 == job.status == listed.status
    assert "cannot be read The bytes of the progress:" in job.words
    assert "prices.csv" in job.words
    assert "<progress" not in job.text
    assert "started cannot be read" in listed.words
    told = told_of(browser, worker)["waiting"]["progress"]
    assert ("unreadable" in told, "cursor" in told, 0) == (True, False, told["items"])


def test_a_mask_hides_cursors(app: Lowkiq, worker: Any, make_browser: MakeBrowser) -> None:
    """A cursor is masked like a payload; where the mask fails it is not shown."""
    start(app, worker, progress({"card": "s3cret"}))

    def break_down(_queue: str, _job_id: str, _value: object) -> object:
        raise ValueError("s3cret")

    for mask, words in ((lambda *_: "***", "***"), (break_down, "the mask failed")):
        browser = make_browser(mask=mask)
        for page in ("job", "waiting", "api/v1/job"):
            answer = browser.get(path(page, worker))
            assert 200 == answer.status
            assert "s3cret" not in answer.text
        assert words in browser.get(path("job", worker)).words
    assert told_of(make_browser(mask=break_down), worker)["waiting"]["progress"]["mask_failed"]
