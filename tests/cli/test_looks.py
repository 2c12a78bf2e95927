"""`lowkiq stats`, `show` and `why`: what is told of queues and jobs."""

import json
import re
import sys
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

from lowkiq_lambda import Config, Lowkiq, Worker, discard_on, kill_on
from lowkiq_lambda.jobs.job import shard_for
from lowkiq_lambda.jobs.progress import JobProgress
from lowkiq_lambda.operate.presentation.diagnosis import Diagnosis
from lowkiq_lambda.operate.presentation.jobs import JobDetails
from lowkiq_lambda.operate.presentation.queues import Queues
from lowkiq_lambda.store.shard.codec import dump_json
from lowkiq_lambda.testing import ManualClock
from lowkiq_lambda.views.queues import QueueHistory, Scale
from tests.cli.conftest import MODULE, TWO_DAYS, ShopOfCommands, handle
from tests.kit.apps import closing_app
from tests.kit.started import put_off
from tests.kit.workers import jobs_of


def test_a_table_has_a_line_for_each_queue(shop: ShopOfCommands) -> None:
    """Numbers for people, and what is odd about a queue behind them; the same for programs, as the API has it."""
    shop.worker.push_many([*jobs_of(["bad 1", "bad 2"]), {"id": "later", "delay": 600}])
    shop.app.drain()
    shop.app.operate(shop.worker).pause()

    code, out, _ = shop.run("stats")
    numbers = msgspec.json.decode(shop.run("stats", "SyncOrder", "--json")[1], type=Queues)

    head, line = out.splitlines()
    assert 0 == code
    assert head.startswith("QUEUE ")
    assert [shop.queue, "1", "0", "s", "0", "0", "2", "0", "0", "paused"] == line.split()
    assert len(line) - len(shop.queue) + len("SyncOrder") < 80
    assert [(shop.queue, 3, 1, 2)] == [(q.name, q.shards_count, q.length, q.morgue_length) for q in numbers.queues]


def test_watching_ends_with_ctrl_c(shop: ShopOfCommands, monkeypatch: pytest.MonkeyPatch) -> None:
    """It tells again and again; Ctrl-C is how it ends, and no error. For programs each look is a line."""
    looks = list[int]()

    class Pause:
        @staticmethod
        def wait(_seconds: float) -> None:
            looks.append(1)
            if len(looks) % 2 == 0:
                raise KeyboardInterrupt

    monkeypatch.setattr("lowkiq_lambda.cli.stats.Event", Pause)
    table, objects = shop.run("stats", "--watch"), shop.run("stats", "--watch", "--json")

    assert (0, 2) == (table[0], table[1].count("QUEUE"))
    assert [[shop.queue]] * 2 == [[q["name"] for q in json.loads(line)["queues"]] for line in objects[1].splitlines()]


@pytest.fixture
def past(shop: ShopOfCommands) -> Iterator[ShopOfCommands]:
    """The shop an hour after its queue has run four ids, one of which failed; it keeps days."""
    clock, config = ManualClock(), Config(redis_url=shop.app.config.redis_url, history_days=30)
    with closing_app(Lowkiq(config, clock=clock)) as app:
        again: type[Worker] = app.worker(type("SyncOrder", (Worker,), {**vars(shop.worker), "app": None}))
        again.push_many(jobs_of(["bad 1", "2", "3", "4"]))
        app.drain()
        clock.advance(3_700)
        sys.modules[MODULE].app = app  # type: ignore[attr-defined]  # the module of the shop
        yield ShopOfCommands(app, again, shop.capsys)


def test_the_hours_of_a_queue_are_lines_with_bars(past: ShopOfCommands) -> None:
    """The last three days, each hour counted back from now; programs get what the API has."""
    code, out, remarks = past.run("stats", "SyncOrder", "--by", "hour")
    history = msgspec.json.decode(past.run("stats", "SyncOrder", "--by", "hour", "--json")[1], type=QueueHistory)

    head, *hours = out.splitlines()
    assert (0, "", ["HOUR", "FROM", "ENDED", "FAILED"], 72) == (code, remarks, head.split(), len(hours))
    assert (3, 1) == (sum(history.series.ended), sum(history.series.failed))
    (busy,) = [line for line in hours if "▇" in line]
    assert hours[-2] == busy
    assert ["3", "1", "▇" * 30] == busy.split()[3:]
    assert [["0", "0"]] * 71 == [line.split()[3:] for line in hours if line != busy]


def test_the_days_of_a_queue_have_their_times(past: ShopOfCommands, shop: ShopOfCommands) -> None:
    """Where the app keeps days; where it does not, a note says how."""
    code, out, remarks = past.run("stats", "SyncOrder", "--by", "day")

    head, day = out.splitlines()
    assert (0, "") == (code, remarks)
    assert head.startswith("DAY ")
    assert ["2027-01-15", "3", "1"] == day.split()[:3]
    assert "▇" * 30 == day.split()[-1]

    sys.modules[MODULE].app = shop.app  # type: ignore[attr-defined]  # the module of the shop
    assert "note: no days are kept: set Config(history_days=30)" in shop.run("stats", "SyncOrder", "--by", "day")[2]


@pytest.mark.parametrize("words", [["stats", "--by", "day"], ["stats", "SyncOrder", "--by", "hour", "--watch"]])
def test_hours_are_of_one_queue_and_stand_still(shop: ShopOfCommands, words: list[str]) -> None:
    """Other combinations are refused."""
    assert (2, True) == ((answer := shop.run(*words))[0], "--by goes with one QUEUE" in answer[2])


def test_a_job_is_shown_wherever_it_is(shop: ShopOfCommands) -> None:
    """What waits, what is dead, the failures in a line each, and why; the same for programs, as the API has it."""
    shop.worker.push_many([{"id": "bad", "payload": {"n": 1}, "score": 1}])
    shop.app.drain()
    shop.worker.push_many([{"id": "bad", "payload": {"n": 2}, "score": 2, "delay": TWO_DAYS}])

    code, out, _ = shop.run("show", shop.queue, "bad")
    details = msgspec.json.decode(shop.run("show", shop.queue, "bad", "--json")[1], type=JobDetails)

    assert 0 == code
    for told in (
        f"waiting in shard {shard_for('bad', 3)}, due in 2d (",
        'never failed\n  score 2: {"n":2}\nin the morgue of shard 1, since ',
        '\n  score 1: {"n":1}\n  error: ValueError: it is bad\n',
        "failures, the newest first\n  ",
        ": ValueError: it is bad\nwhy: It is not due yet: it waits for another ",
    ):
        assert told in out
    assert details.waiting is not None
    assert details.morgue is not None
    assert (2, 1, details.why) == (details.waiting.payloads[0].score, len(details.failures), details.why)
    assert details.why.startswith("It is not due yet")


def test_what_the_mask_hides_is_hidden(shop: ShopOfCommands) -> None:
    """A terminal shows no more than the dashboard does, and a mask that fails shows nothing."""
    shop.app.core.configure(mask=lambda _queue, _id, _payload: "hidden")
    shop.worker.push_many([{"id": "17", "payload": "secret", "score": 1}])
    masked = shop.run("show", shop.queue, "17")[1]

    assert '  score 1: "hidden"\n' in masked
    assert "secret" not in masked + shop.run("show", shop.queue, "17", "--json")[1]
    assert '"hidden"\n' in shop.run("edit", shop.queue, "17")[1]


def test_why_a_job_waits_is_told_in_a_sentence(shop: ShopOfCommands) -> None:
    """The dashboard's words, and when something happens next; the same for programs."""
    shop.worker.push_many([{"id": "17", "delay": 7200}])

    code, out, _ = shop.run("why", shop.queue, "17")
    diagnosis = msgspec.json.decode(shop.run("why", shop.queue, "17", "--json")[1], type=Diagnosis)

    assert 0 == code
    assert out.startswith("It is not due yet: it waits for another ")
    assert "\nNext: " in out
    assert ("due later", True) == (diagnosis.kind, diagnosis.next_at is not None)


def test_why_tells_when_a_payload_expires(shop: ShopOfCommands) -> None:
    """While it waits, and once nothing is left of it."""
    code, _, err = shop.run("push", shop.queue, "17", "--delay", "7200", "--expires-in", "600")
    waits = shop.run("why", shop.queue, "17")[1]
    shop.worker.push_many([{"id": "18", "expires_at": 1_500_000_000}])
    late = shop.run("why", shop.queue, "18")[1]
    shop.app.drain()
    gone = shop.run("why", shop.queue, "18")

    assert (0, "") == (code, err)
    assert "Its oldest payload expires in 2h" in waits
    assert " ago: it leaves the queue when it is claimed." in late
    assert (1, "A payload of it expired, which was found at ") == (gone[0], gone[1].splitlines()[1][:44])
    assert 2 == shop.run("push", shop.queue, "17", "--expires-in", "0.5")[0]


def test_why_names_the_next_commands(shop: ShopOfCommands) -> None:
    """What is typed next, with the words that the shell needs around them; and a program is told none."""
    shop.worker.push_many([{"id": "bad job"}, {"id": "-17", "delay": 7200}])
    shop.app.drain()

    dead, later = shop.run("why", shop.queue, "bad job")[1], shop.run("why", shop.queue, "--", "-17")[1]

    assert ": its only try failed, with ValueError: it is bad." in dead
    assert dead.endswith(
        f"-> show it: lowkiq show {shop.queue} 'bad job'\n-> run it again: lowkiq requeue {shop.queue} 'bad job'\n"
    )
    assert later.endswith(f"-> run it now: lowkiq run-now {shop.queue} -- -17\n")
    assert (0, "requeued 1 job\n") == shop.run("requeue", shop.queue, "bad job", "--yes")[:2]


def test_why_names_the_command_that_ends_a_pause(shop: ShopOfCommands) -> None:
    """Of the whole queue, or of a tenant, whatever it is called."""
    tenants = {"queue_name": f"{shop.queue}-t", "tenants": "spread", "perform": lambda _self, _batch: None}
    spread: Any = shop.app.worker(type("SyncShop", (Worker,), tenants))
    shop.worker.push_many([{"id": "17"}])
    spread.push_many([{"id": "-my shop:17"}])
    shop.app.operate(shop.worker).pause()
    shop.app.operate(spread).pause(tenant="-my shop")

    queue, tenant = shop.run("why", shop.queue, "17")[1], shop.run("why", f"{shop.queue}-t", "--", "-my shop:17")[1]

    assert queue.endswith(f"-> end the pause: lowkiq resume {shop.queue}\n")
    assert tenant.endswith(f"-> end the pause: lowkiq resume {shop.queue}-t '--tenant=-my shop'\n")
    assert (0, "resumed\n") == shop.run("resume", f"{shop.queue}-t", "--tenant=-my shop", "--yes")[:2]


def test_a_paused_job_is_said_to_be_paused(shop: ShopOfCommands) -> None:
    """Its time to come is none that anybody waits for; why has the command that ends the pause."""
    shop.worker.push("-17")
    shop.run("pause", shop.queue, "--id=-17", "--yes")

    shown, listed = shop.run("show", shop.queue, "--", "-17")[1], shop.run("ls", shop.queue)[1]
    why = shop.run("why", shop.queue, "--", "-17")[1].splitlines()

    assert re.match(r"waiting in shard \d, paused, never failed\n", shown)
    assert ["-17", "paused"] == listed.splitlines()[1].split()[:2]
    assert f"-> end the pause: lowkiq resume {shop.queue} --id=-17" == why[-1]
    assert 0 == shop.run("resume", shop.queue, "--id=-17", "--yes")[0]
    assert "paused" not in shop.run("show", shop.queue, "--", "-17")[1]


def test_a_started_job_is_shown_with_its_progress(shop: ShopOfCommands, monkeypatch: pytest.MonkeyPatch) -> None:
    """How far it is and its cursor, as far as the mask shows that; why has the numbers alone."""
    shop.worker.push("17")
    put_off(shop.app, shop.worker, "17", JobProgress(cursor=dump_json(["eu", 61_204]), items=3, total=4, seconds=60.0))

    shown, why = shop.run("show", shop.queue, "17")[1], shop.run("why", shop.queue, "17")[1]
    monkeypatch.setattr(type(shop.app.config), "mask", property(lambda _: lambda *_: "***"))
    masked = shop.run("show", shop.queue, "17")[1] + shop.run("why", shop.queue, "17")[1]

    words = "3 of 4 items, 1m of work, about 20 s left"
    assert f'\n  progress: {words}\n  cursor: ["eu",61204]\n' in shown
    assert f"\nProgress: {words}.\n" in why
    assert ('\n  cursor: "***"\n' in masked, "61204" in masked) == (True, False)


def test_why_tells_how_a_blocked_id_is_unblocked(shop: ShopOfCommands) -> None:
    """No command does it: the dashboard and Python do."""
    holding = {"queue_name": f"{shop.queue}-h", "max_retry_count": 0, "dead_head": "block"}
    holds: Any = shop.app.worker(type("Holds", (Worker,), {**holding, "perform": lambda _self, _batch: 1 / 0}))
    holds.push("17")
    shop.app.drain()

    out = shop.run("why", f"{shop.queue}-h", "17")[1]

    assert "\nIts error was ZeroDivisionError: division by zero.\n-> show it: " in out
    assert "\n-> unblock it: on its page of the dashboard" in out
    assert "app.operate(Holds).unblock(['17'], \"retry\")" in out


@pytest.mark.parametrize("command", ["show", "why"])
def test_an_unknown_id_ends_with_1(shop: ShopOfCommands, command: str) -> None:
    """A script can ask whether a job is there."""
    code, out, told = shop.run(command, shop.queue, "nobody")

    assert 1 == code
    assert "The queue has no job of this id" in out + told


def test_a_queue_that_is_declared_otherwise_is_looked_at_as_it_was_made(shop: ShopOfCommands) -> None:
    """Who has edited a declaration still finds the jobs, and is told of the difference; what is pushed is refused."""
    shop.worker.push_many(jobs_of("abc"))
    with closing_app(Lowkiq(Config(redis_url=shop.app.core.connections.url))) as edited:
        edited.worker(queue_name=shop.queue, shards_count=2)(print)
        vars(sys.modules[MODULE])["app"] = edited

        shown = shop.run("show", shop.queue, "a")
        why = shop.run("why", shop.queue, "a")
        table = shop.run("stats")
        refused = shop.run("push", shop.queue, "d")
        deleted = shop.run("delete", shop.queue, "a", "--yes")

    note = f"note: the app declares the queue {shop.queue!r} with shards_count=2, and it was made with shards_count=3"
    assert [0, 0, 0, 1, 0] == [code for code, *_ in (shown, why, table, refused, deleted)]
    assert [True] * 3 == [told.startswith(note) for _, _, told in (shown, why, deleted)]
    assert "  declared otherwise\n" in table[1]
    assert "error: Queue " in refused[2]
    assert ["b", "c"] == [job.id for job in shop.app.operate(shop.worker).waiting.fetch([*"abc"])]


def test_a_queue_that_the_app_does_not_have_is_found_on_the_server(shop: ShopOfCommands) -> None:
    """Of another app on the server, or of a worker that was deleted: what was made can be looked at, and ended."""
    shop.worker.push_many(jobs_of("ab"))
    with closing_app(Lowkiq(Config(redis_url=shop.app.core.connections.url))) as other:
        vars(sys.modules[MODULE])["app"] = other

        why = shop.run("why", shop.queue, "a")
        deleted = shop.run("delete", shop.queue, "--all", "--yes")
        pushed = shop.run("push", shop.queue, "c")

    assert (0, 0, 2) == (why[0], deleted[0], pushed[0])
    assert f"note: the app has no worker for the queue {shop.queue!r}, which is on the server.\n" == why[2]
    assert "deleted 2 jobs\n" == deleted[1]
    assert "the app has none." in pushed[2]


def test_a_first_failure_is_told_as_such(shop: ShopOfCommands) -> None:
    """Once is no number of times."""
    failing = shop.app.worker(queue_name=f"{shop.queue}-failing")(handle)
    failing.push_many([{"id": "bad"}])
    shop.app.drain()

    assert shop.run("show", f"{shop.queue}-failing", "bad")[1].splitlines()[0].endswith(", failed once")


def test_the_rule_that_decided_is_told(shop: ShopOfCommands) -> None:
    """SK-5: of what is dead on its lines, of what was discarded by the journal, as nothing else is left of it."""
    for job_id, rule in (("bad", kill_on(ValueError)), ("bad gone", discard_on(ValueError))):
        shop.worker.on_error = (rule,)
        shop.worker.push_many(jobs_of([job_id]))
        shop.app.drain()

    shown, why = shop.run("show", shop.queue, "bad")[1], shop.run("why", shop.queue, "bad")[1]
    code, gone, _ = shop.run("why", shop.queue, "bad gone")

    assert ": ValueError: it is bad (kill_on(ValueError) decided)\n" in shown
    assert "kill_on(ValueError) decided that there is no other" in why
    assert (1, "discard_on(ValueError) dropped a payload of it at ") == (code, gone.splitlines()[1][:50])
    as_json = json.loads(shop.run("why", shop.queue, "bad gone", "--json")[1])
    assert [gone.splitlines()[1]] == as_json["more"]
    assert gone.splitlines()[1] in shop.run("show", shop.queue, "bad gone")[2]


def test_scale_tells_how_many_threads_the_queues_could_use(shop: ShopOfCommands) -> None:
    """By queue and in sum; for programs as the API does."""
    shop.worker.push_many([{"id": f"id-{n}"} for n in range(40)])

    code, out, _ = shop.run("scale")
    scale = msgspec.json.decode(shop.run("scale", "--json")[1], type=Scale)

    rows = [line.split()[:3] for line in out.splitlines()[1:]]
    assert (0, [[shop.queue, "3", "3"], ["(all)", "3", "3"]]) == (code, rows)
    assert (3, 3, {shop.queue}) == (scale.wanted, scale.most, {*scale.queues})
