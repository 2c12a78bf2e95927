"""What is kept of the errors of jobs, and what logs print of them, through drains."""

import asyncio
import logging
import re
import zlib
from pathlib import Path
from typing import Any

import pytest

from lowkiq_lambda import Batch, Lowkiq, message_only
from lowkiq_lambda.base.error_text import LONGEST_LOGGED, say_error
from lowkiq_lambda.testing import ManualClock
from tests.kit.apps import MakeApp
from tests.kit.handlers import Broken, Notes, raising
from tests.kit.looks import look
from tests.kit.workers import declare, jobs_of


async def in_a_group(error: BaseException) -> None:
    """Raises it out of a TaskGroup."""

    async def fail() -> None:
        raise error

    async with asyncio.TaskGroup() as group:
        group.create_task(fail())


def test_the_error_of_a_job_has_type_message_and_frames_by_default(make_app: MakeApp, queue_name: str) -> None:
    """Who looks at a failed job sees what was raised, and where, without the library's own frames."""

    def charge(batch: Batch) -> None:
        order: dict[str, int] = {}
        for _ in batch:
            order["amount_cents"] += 1

    app = make_app(format_error=say_error)
    worker = declare(app, queue_name, charge)
    worker.push_many(jobs_of("a"))
    app.drain()

    waiting = look(app, worker, "a")
    assert waiting is not None
    first, *frames = str(waiting.error).splitlines()
    assert "KeyError: 'amount_cents'" == first
    assert ", in charge" in frames[-2]
    assert '    order["amount_cents"] += 1' == frames[-1]
    assert "lowkiq_lambda/" not in str(waiting.error)


def test_ln4_no_path_of_the_machine_is_kept_with_a_job(make_app: MakeApp, queue_name: str) -> None:
    """LN-4: by default files are named from where they are imported, those of the standard library too."""
    app = make_app(format_error=say_error)
    worker = declare(app, queue_name, lambda _batch: asyncio.run(in_a_group(Broken("broken"))))
    worker.push_many(jobs_of("a"))
    app.drain()

    waiting = look(app, worker, "a")
    assert waiting is not None
    files = re.findall(r'File "([^"]+)"', str(waiting.error))
    assert "tests/rules/test_error_texts.py" in files
    assert [] == [file for file in files if file.startswith("/")]
    assert str(Path(__file__).parents[2]) not in str(waiting.error)


def test_ln4_the_message_alone_may_be_kept(make_app: MakeApp, queue_name: str) -> None:
    """LN-4: with `message_only` an error has type and message, and no traceback."""
    app = make_app(format_error=message_only)
    worker = declare(app, queue_name, raising(Broken("broken")))
    worker.push_many(jobs_of("a"))
    app.drain()

    waiting = look(app, worker, "a")
    assert waiting is not None
    assert "Broken: broken" == waiting.error


def test_groups_of_different_errors_are_not_alike(app: Lowkiq, queue_name: str) -> None:
    """P6: what a TaskGroup raises says the same of any cause, but who failed by different ones is not charged."""

    def then(batch: Batch) -> None:
        asyncio.run(in_a_group(Broken(f"{next(iter(batch))} is broken")))

    notes = Notes(then)
    worker = declare(app, queue_name, notes, batch_size=10)
    worker.push_many(jobs_of("abcdefghij"))

    assert {"suspected": 10, "failed": 10, "retried": 10} == app.drain()
    assert ["abcdefghij", *"abcdefghij"] == ["".join(ids) for ids in notes.ids]


def test_objects_addresses_make_no_difference(app: Lowkiq, queue_name: str) -> None:
    """What hits everything is known as one failure, though its message has an address that differs each time."""
    made: list[object] = []

    def then(_batch: Batch) -> None:
        made.append(object())
        raise Broken(f"{made[-1]!r} is closed")

    notes = Notes(then)
    worker = declare(app, queue_name, notes, batch_size=10)
    worker.push_many(jobs_of("abcdefghij"))
    app.drain()

    assert ["abcdefghij", "a", "b", "c"] == ["".join(ids) for ids in notes.ids]


def raise_endless(*_arguments: object) -> None:
    """Raises what no log should print."""
    raise Broken("x" * 5_000_000)


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"perform_job": raise_endless},
        {"retry_in": raise_endless},
        {"max_retry_count": 0, "retries_exhausted": raise_endless},
    ],
    ids=["a batch", "a job", "retry_in", "retries_exhausted"],
)
def test_a_message_of_megabytes_is_cut_in_logs(
    app: Lowkiq, queue_name: str, caplog: pytest.LogCaptureFixture, fields: dict[str, Any]
) -> None:
    """Whatever of a worker raises it, a line of a log stays a line."""
    worker = declare(app, queue_name, raising(Broken("x" * 5_000_000)), **fields)
    worker.push_many(jobs_of("a"))
    app.drain()

    lines = [logging.Formatter().format(record) for record in caplog.records]
    assert any("xxx [of 5,000,000 characters] xxx" in line for line in lines)
    assert max(map(len, lines)) < LONGEST_LOGGED


@pytest.mark.parametrize("hook", ["format_error", "dump_error", "load_error"])
def test_a_message_of_megabytes_is_cut_in_logs_of_formatters(
    make_app: MakeApp, queue_name: str, caplog: pytest.LogCaptureFixture, hook: str
) -> None:
    """What formats errors may raise it, too."""
    app = make_app(**{hook: raise_endless})
    worker = declare(app, queue_name, raising(), batch_size=10)
    worker.push_many(jobs_of("abcdefghij"))
    app.drain()

    lines = [logging.Formatter().format(record) for record in caplog.records if hook in record.getMessage()]
    assert lines
    assert max(map(len, lines)) < LONGEST_LOGGED


def test_ln4_errors_have_a_codec_of_their_own(make_app: MakeApp, clock: ManualClock, queue_name: str) -> None:
    """LN-4: the recipe that compresses full traces works, and reads what was stored before it."""

    def load_error(dumped: bytes) -> str:
        try:
            return zlib.decompress(dumped).decode()
        except zlib.error:
            return dumped.decode()

    before = make_app()
    after = make_app(
        format_error=lambda error: f"<{error}>",
        dump_error=lambda text: zlib.compress(text.encode()),
        load_error=load_error,
    )
    notes = Notes(raising())
    for app in (before, after):
        declare(app, queue_name, notes, max_retry_count=2).push_many(jobs_of("a"))

    for app in (before, after, after):
        app.drain()
        clock.advance(20)

    assert [None, "broken", "<broken>"] == [job.error for (job,) in notes.jobs]
    assert ["<broken>"] == [job.error for job in notes.dead]
