"""Alerts: one message when something begins to need somebody, and one when it ends, also if the webhook fails."""

import logging
import math
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from lowkiq_lambda import Config, ConfigError, Lowkiq, Worker
from lowkiq_lambda.declare.duty import ALERTS
from lowkiq_lambda.operate.alerts.duty import AlertDuty, alert_runner
from lowkiq_lambda.operate.alerts.record import MOST_MESSAGES, AlertRecord, AlertStore
from lowkiq_lambda.operate.alerts.sending import AlertNotTaken, webhook
from lowkiq_lambda.operate.doctor.checkup import check_up
from lowkiq_lambda.operate.doctor.findings import Act, Need
from lowkiq_lambda.testing import ManualClock
from tests.kit.apps import MakeApp
from tests.kit.handlers import Notes
from tests.kit.servers import Server
from tests.kit.webhooks import Answer, Webhook, webhook_server
from tests.kit.workers import declare, jobs_of

MINUTE = 60.0


@pytest.fixture
def hook() -> Iterator[Webhook]:
    """It takes all that it is sent."""
    with webhook_server() as serving:
        yield serving


@pytest.fixture
def app(make_app: MakeApp, own_server: Server, hook: Webhook) -> Lowkiq:
    """Alone on its server, so that nothing else needs somebody; it tells the webhook."""
    return make_app(redis_url=own_server.url, alert=hook.url)


@pytest.fixture
def worker(app: Lowkiq, queue_name: str) -> type[Worker[Any]]:
    """Its queue has a job that is due, so that a pause of it needs somebody."""
    worker = declare(app, queue_name, Notes())
    worker.push_many(jobs_of("a"))
    return worker


def look(app: Lowkiq, clock: ManualClock) -> Any:
    """The run of a minute; the result, or the exception."""
    clock.advance(MINUTE)
    ran = alert_runner(app.operate, clock).run_due(lambda: math.inf)
    return ran.results.get(ALERTS) or ran.errors.get(ALERTS)


def about(hook: Webhook, check: str = "paused") -> list[str]:
    """The events that it took of that check."""
    return [event for event, of in hook.events() if of == check]


def test_the_doctor_says_who_sends(app: Lowkiq, worker: type[Worker[Any]]) -> None:
    """Housekeeping of a stack does other duties, and not this one."""
    assert worker.queue_name in app.core.queues

    (found,) = [one for one in check_up(app.operate).findings if (one.check, one.about) == ("duties", ALERTS)]

    assert ("warning", True) == (found.mark, "functions send no alerts" in found.advice)


def test_one_message_when_it_begins_and_one_when_it_ends(
    app: Lowkiq, worker: type[Worker[Any]], hook: Webhook, clock: ManualClock
) -> None:
    """However many looks find it; it ends when two looks in a row do not, and may begin anew."""
    app.operate(worker).pause()
    for _ in range(3):
        look(app, clock)
    while_paused = about(hook)
    app.operate(worker).resume()
    look(app, clock)
    after_one_look = about(hook)
    for _ in range(3):
        look(app, clock)
    resumed = about(hook)
    app.operate(worker).pause()
    look(app, clock)

    assert ["begins"] == while_paused == after_one_look
    assert ["begins", "ends"] == resumed
    assert ["begins", "ends", "begins"] == about(hook)
    messages = [message for message in hook.taken if message["check"] == "paused"]
    assert 3 == len({message["key"] for message in messages})
    first = messages[0]
    assert worker.queue_name == first["queue"] == first["about"]
    assert f"{worker.queue_name}: " in first["text"]
    assert messages[1]["text"].startswith(f"Ended: {worker.queue_name}: ")
    assert [message["key"] for message in hook.tried] == hook.keys


@pytest.mark.parametrize("answer", [500, 302, 404, "drops", "hangs", "dribbles"])
@pytest.mark.usefixtures("worker")
def test_a_message_that_is_not_taken_comes_again(
    app: Lowkiq,
    hook: Webhook,
    clock: ManualClock,
    answer: Answer,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """With the same key, until it is taken once; the log has the host alone, as the address is a secret."""
    send = webhook(hook.url, timeout=0.5, deadline=0.5)
    duty = AlertDuty(app.operate, send)
    app.operate(app.workers[0]).pause()
    hook.answers[:] = [answer, answer]
    with caplog.at_level(logging.INFO):
        for _ in range(20):
            duty.run(lambda: math.inf)
            clock.advance(MINUTE)

    tried = [message for message in hook.tried if message["key"] == hook.tried[0]["key"]]
    assert len({message["key"] for message in hook.tried}) == len(hook.taken)
    assert 1 <= len(tried) <= 3
    assert len(hook.taken) + 2 == len(hook.tried)
    assert ["begins"] == about(hook)
    assert "127.0.0.1" in caplog.text
    assert "secret" not in caplog.text


def test_waits_grow_and_the_duty_fails_at_last(
    app: Lowkiq, worker: type[Worker[Any]], hook: Webhook, clock: ManualClock
) -> None:
    """A webhook that is away is asked less and less often; after some tries the first page tells of it."""
    app.operate(worker).pause()
    hook.answers[:] = [500] * 100
    results = [look(app, clock) for _ in range(60)]
    tries = len(hook.tried)
    hook.answers.clear()
    for _ in range(20):
        look(app, clock)

    assert 1 == results[0]["failed"]
    assert any(isinstance(result, AlertNotTaken) for result in results)
    assert tries <= 10 * len({message["key"] for message in hook.tried})
    assert ["begins"] == about(hook)
    # Nor did the duty's own failure make a message that could not come.
    assert [] == about(hook, "duties")


def test_a_process_that_dies_after_it_sent_repeats_with_the_same_key(
    app: Lowkiq, worker: type[Worker[Any]], hook: Webhook, clock: ManualClock
) -> None:
    """At least once: the receiver can tell by the key. It is not repeated at once."""

    def send_and_die(message: Mapping[str, Any]) -> None:
        webhook(hook.url)(message)
        raise SystemExit

    app.operate(worker).pause()
    with pytest.raises(SystemExit):
        AlertDuty(app.operate, send_and_die).run(lambda: math.inf)
    at_once = AlertDuty(app.operate).run(lambda: math.inf)
    first = hook.taken[0]["key"]
    before = [message["key"] for message in hook.taken].count(first)
    clock.advance(MINUTE)
    AlertDuty(app.operate).run(lambda: math.inf)
    AlertDuty(app.operate).run(lambda: math.inf)

    assert at_once is not None
    assert 1 == before
    assert 2 == [message["key"] for message in hook.taken].count(first)


def test_two_processes_that_look_at_the_same_time_announce_once(app: Lowkiq, hook: Webhook) -> None:
    """The one whose record was replaced meanwhile writes nothing."""
    stores = [AlertStore(app.core.backend, hook.url, 1.0) for _ in range(2)]
    records = [store.read() for store in stores]
    for record in records:
        record.note([need("paused", "a")], ["a"], 1.0)

    assert [True, False] == [store.write(record) for store, record in zip(stores, records, strict=True)]
    assert 1 == len(stores[1].read().announced)


def test_a_callable_takes_messages_and_is_given_again_what_it_raises_on(
    make_app: MakeApp, own_server: Server, clock: ManualClock, queue_name: str
) -> None:
    """For mail, chat and pagers; what it raises is logged, and nothing else stops."""
    notes: list[Mapping[str, Any]] = []

    def tell(message: Mapping[str, Any]) -> None:
        notes.append(message)
        if len(notes) == 1:
            raise ValueError("away")

    app = make_app(redis_url=own_server.url, alert=tell)
    worker = declare(app, queue_name, Notes())
    worker.push_many(jobs_of("a"))
    app.operate(worker).pause()
    for _ in range(5):
        look(app, clock)

    assert notes[0]["key"] in [note["key"] for note in notes[1:]]
    assert ["begins"] == [note["event"] for note in notes[1:] if note["check"] == "paused"]


def test_an_app_without_alerts_has_no_key_and_no_duty(make_app: MakeApp, own_server: Server) -> None:
    """Nobody pays for what is not used."""
    app = make_app(redis_url=own_server.url)
    declare(app, "queue", Notes()).push_many(jobs_of("a"))
    app.drain()

    assert [] == own_server.admin.keys("*alerts*")
    assert [] == app.operate.duties()


def test_with_alerts_a_quiet_minute_writes_nothing(
    app: Lowkiq, worker: type[Worker[Any]], own_server: Server, clock: ManualClock
) -> None:
    """It reads its record beside what the look reads."""
    app.operate(worker).pause()
    look(app, clock)
    changes = own_server.admin.info("persistence")["rdb_changes_since_last_save"]
    AlertDuty(app.operate).run(lambda: math.inf)

    assert changes == own_server.admin.info("persistence")["rdb_changes_since_last_save"]
    assert 1 == len(own_server.admin.keys("lowkiq:alerts:*"))
    assert [ALERTS] == [duty.name for duty in app.operate.duties()]


def need(check: str, queue: str) -> Need:
    """A need of a queue."""
    act = Act(label="See it", page="queue", query={"queue": queue})
    return Need(check=check, mark="warning", about=queue, says="it is so", advice="", act=act)


def test_a_release_without_a_queue_does_not_end_what_another_has_told() -> None:
    """While two releases run side by side; a day later it ends."""
    record = AlertRecord()
    record.note([need("paused", "new")], ["old", "new"], 0.0)
    for minute in range(1, 10):
        record.note([], ["old"], minute * MINUTE)
    events = [message.event for message in record.waiting]
    record.note([], ["old"], 90_000.0)

    assert ["begins"] == events
    assert ["begins", "ends"] == [message.event for message in record.waiting]


def test_messages_are_bounded_and_an_end_waits_for_its_beginning() -> None:
    """The oldest give way; and nobody is told of an end before its beginning."""
    record = AlertRecord()
    _, dropped = record.note([need("paused", str(number)) for number in range(MOST_MESSAGES + 3)], [], 0.0)
    alone = AlertRecord()
    alone.note([need("paused", "a")], ["a"], 0.0)
    for minute in (1, 2):
        alone.note([], ["a"], minute * MINUTE)
    alone.waiting[0].put_off(2 * MINUTE)

    assert (MOST_MESSAGES, 3) == (len(record.waiting), len(dropped))
    assert ["begins", "ends"] == [message.event for message in alone.waiting]
    assert alone.due(2 * MINUTE) is None


def test_the_address_comes_from_the_environment_and_is_never_told() -> None:
    """Code comes before the environment; what cannot work is refused without the value."""
    environ = {"LOWKIQ_ALERT_URL": "https://hooks.example.com/secret"}

    config = Config.from_env(environ)
    assert "https://hooks.example.com/secret" == config.alert
    assert "secret" not in repr(config)
    assert Config.from_env(environ, alert=print).alert is print
    for bad in ("ftp://secret", "https://", "http://host:secret/", "http://user:secret@host/", 5):
        with pytest.raises(ConfigError) as refused:
            Config(alert=bad)  # type: ignore[arg-type]  # some are no text
        assert "secret" not in str(refused.value)


def test_an_address_with_a_user_is_refused_for_that() -> None:
    """The reason is the user, and not the scheme; the address, which is a secret, is not in the message."""
    with pytest.raises(ConfigError, match="its URL has a user or a password") as refusal:
        Config(alert="https://olga:token@chat.example/hook")
    assert "olga" not in str(refusal.value)
