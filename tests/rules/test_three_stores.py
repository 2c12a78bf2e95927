"""What waits under an id as a list, as a set, or as a set by time: the recipes of docs/gathering.md (B-7)."""

from datetime import timedelta

from lowkiq_lambda import Debounce, Lowkiq
from lowkiq_lambda.testing import ManualClock
from tests.kit.handlers import Notes
from tests.kit.workers import declare


def test_b7_a_list_keeps_order_and_equal_entries(app: Lowkiq, queue_name: str) -> None:
    """B-7, B-6: first in, first out, at most so many in one call."""
    notes = Notes()
    worker = declare(app, queue_name, notes, merge="never", payloads_at_once=2)
    for step in ("add", "add", "pay"):
        worker.push_many([{"id": "account", "payload": step}])

    app.drain()

    assert [{"account": ["add", "add"]}, {"account": ["pay"]}] == notes.batches


def test_b7_a_set_has_each_entry_once(app: Lowkiq, queue_name: str) -> None:
    """B-7: a duplicate vanishes, whoever adds it."""
    notes = Notes()
    worker = declare(app, queue_name, notes)
    for page in ("/home", "/cart", "/home", "/cart"):
        worker.push_many([{"id": "account", "payload": page}])

    app.drain()

    assert [{"account": ["/home", "/cart"]}] == notes.batches


def test_b7_a_set_by_time_is_due_after_the_first_action_or_after_the_last(
    app: Lowkiq, clock: ManualClock, queue_name: str
) -> None:
    """B-7: `delay` counts from the first action of a client, `debounce` from the last."""
    reminders, summaries = Notes(), Notes()
    five = timedelta(minutes=5)
    remind = declare(app, f"{queue_name}-remind", reminders)
    summarise = declare(app, f"{queue_name}-summarise", summaries, debounce=Debounce(five, at_most=timedelta(hours=1)))
    for action in ("opens", "edits", "saves"):
        remind.push_many([{"id": "client", "payload": action, "delay": five}])
        summarise.push_many([{"id": "client", "payload": action}])
        clock.advance(120)
    sent = []
    for _ in range(4):
        app.drain()
        sent.append((len(reminders.batches), len(summaries.batches)))
        clock.advance(60)

    assert [(1, 0), (1, 0), (1, 0), (1, 1)] == sent
    assert [{"client": ["opens", "edits", "saves"]}] == reminders.batches == summaries.batches
