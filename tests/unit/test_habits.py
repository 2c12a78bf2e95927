"""Methods of other libraries: the answer names ours."""

import pytest

from lowkiq_lambda import Lowkiq, Worker


class Mails(Worker):
    """A worker with a method of its own that has such a name."""

    @classmethod
    def send(cls) -> str:
        """Of the user."""
        return "sent"


def sync(_batch: object) -> None:
    """A handler."""


@pytest.mark.parametrize(
    ("name", "answer"),
    [
        ("delay", r"is a method of Celery: write \w+.push\(id, payload\)"),
        ("apply_async", r"is a method of Celery: write \w+.push\(id, payload\), with delay= or due_at= for later"),
        ("enqueue", r"is a method of RQ and Django: write \w+.push\(id, payload\)"),
        ("perform_in", r"is a method of Sidekiq: write \w+.push\(id, payload, delay=...\)"),
        ("push_async", r"is a method of other libraries: write \w+.apush\(id, payload\)"),
    ],
)
def test_a_habit_gets_the_name_that_helps(name: str, answer: str) -> None:
    """Of a class and of a function alike; the attribute is absent for code that asks."""
    with pytest.raises(AttributeError, match=f"^Mails.{name} {answer}$"):
        getattr(Mails, name)
    with pytest.raises(AttributeError, match=f"^sync.{name} {answer}$"):
        getattr(Lowkiq().worker(queue_name="habits")(sync), name)
    assert not hasattr(Mails, name)


def test_a_method_of_the_user_stays() -> None:
    """A worker may have a method of such a name."""
    assert Mails.send() == "sent"
