"""`--filter`, `--error`, `--dry-run`, `--reason` and `--json` of the commands that change jobs."""

from typing import Any

import msgspec
import pytest

from lowkiq_lambda import Worker
from lowkiq_lambda.cli.changing import ChangeView
from lowkiq_lambda.operate.inspect.activity import read_activity
from lowkiq_lambda.views.activity import ActivityEntry
from tests.cli.conftest import ShopOfCommands, Type
from tests.kit.handlers import Notes
from tests.kit.handlers import failing as failing_ids
from tests.kit.looks import ids_of
from tests.kit.workers import declare, jobs_of


@pytest.fixture
def retried(shop: ShopOfCommands) -> type[Worker]:
    """A worker of the shop with two ids that have failed, and one that is due in ten minutes."""
    never: dict[str, Any] = {"max_retry_count": 3, "retry_in": lambda _self, _count: 600.0}
    worker = declare(shop.app, f"{shop.queue}-retried", Notes(failing_ids("a1", "b1")), **never)
    worker.push_many(jobs_of(["a1", "b1"]))
    shop.app.drain()
    worker.push_many([{"id": "fresh", "delay": 600}])
    return worker


def view(answer: tuple[int, str, str]) -> tuple[int, ChangeView]:
    """The exit code, and what a program reads."""
    code, out, _ = answer
    return code, msgspec.json.decode(out, type=ChangeView)


def past(shop: ShopOfCommands, queue: str) -> list[ActivityEntry]:
    """The activity of a queue, newest first."""
    return read_activity(shop.app.core.backend, 0.0, [queue], 10)


@pytest.mark.parametrize(
    ("act", "search", "touched"),
    [
        ("kill", ["--filter", "prefix=a"], ["a1"]),
        ("kill", ["--all"], ["a1", "b1"]),
        ("kill", ["a1", "fresh", "nobody"], ["a1"]),
        ("run-now", ["--filter", "least_count=0"], ["a1", "b1"]),
        ("run-now", ["--all"], ["a1", "b1", "fresh"]),
        ("run-now", ["fresh", "nobody"], ["fresh"]),
        ("delete", ["--error", "IS BROKEN"], ["a1", "b1"]),
        ("delete", ["--filter", "prefix=f"], ["fresh"]),
        ("unblock", ["--filter", "prefix=a"], []),
        ("unblock", ["a1"], []),
    ],
)
def test_a_dry_run_counts_what_the_change_then_changes(
    shop: ShopOfCommands, retried: type[Worker], act: str, search: list[str], touched: list[str]
) -> None:
    """Both have the same number; the dry run changes nothing, says so by 1, and is no line of the activity."""
    before = sorted(ids_of(shop.app.operate(retried).waiting.list()))
    code, planned = view(shop.run(act, retried.queue_name, *search, "--dry-run", "--json"))

    assert (1, True, True, touched) == (code, planned.dry_run, planned.is_all, sorted(planned.ids))
    assert before == sorted(ids_of(shop.app.operate(retried).waiting.list()))
    assert [] == past(shop, retried.queue_name)

    _, done = view(shop.run(act, retried.queue_name, *search, "--yes", "--json"))

    assert (len(touched), False, retried.queue_name) == (done.changed, done.dry_run, done.queue)
    assert planned.changed == done.changed
    assert planned.act == done.act


def test_people_read_a_dry_run_in_a_sentence(shop: ShopOfCommands, retried: type[Worker]) -> None:
    """The number, the first ids, and that nothing was changed."""
    code, out, _ = shop.run("kill", retried.queue_name, "--filter", "prefix=a", "--dry-run")

    sentence = f"1 job waiting after a failure in {retried.queue_name} would be killed: a1; nothing was changed\n"
    assert (1, sentence) == (code, out)


def test_a_search_is_killed_and_the_activity_says_why_and_from_where(
    shop: ShopOfCommands, retried: type[Worker], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The person, the host, the session and the reason stand beside the search."""
    monkeypatch.setenv("LOWKIQ_OPERATOR", "ann")
    monkeypatch.setenv("SSH_CLIENT", "192.0.2.7 5022 22")
    monkeypatch.setattr("socket.gethostname", lambda: "web-1")

    killed = shop.run("kill", retried.queue_name, "--filter", "prefix=a", "--reason", "a bad release", "--yes")

    assert (0, "killed 1 job, of 3 that were examined\n") == killed[:2]
    assert ["a1"] == ids_of(shop.app.operate(retried).morgue.list())
    (entry,) = past(shop, retried.queue_name)
    assert ("ann (lowkiq)", "kill", "found by: prefix=a", 1) == (entry.who, entry.action, entry.target, entry.changed)
    assert ("web-1, from 192.0.2.7", "a bad release") == (entry.address, entry.reason)
    assert entry.session.startswith("process ")


def test_with_a_mask_the_activity_has_the_paths_of_a_search_alone(
    shop: ShopOfCommands, retried: type[Worker], monkeypatch: pytest.MonkeyPatch
) -> None:
    """P10: the value may be one that the mask hides from those who read the activity."""
    monkeypatch.setattr(type(shop.app.config), "mask", property(lambda _self: lambda _queue, _id, payload: payload))
    retried.push("paid", {"card": "4711"}, delay=600)

    shop.run("delete", retried.queue_name, "--payload", "card:4711", "--filter", "prefix=p", "--yes")

    (entry,) = past(shop, retried.queue_name)
    assert ("found by: prefix=p, payload=card:…", 1) == (entry.target, entry.changed)


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ([], "Give ids, --all, or --filter: one of the three."),
        (["17", "--all"], "one of the three"),
        (["--all", "--error", "late"], "one of the three"),
        (["--filter", "prefix"], "--filter prefix is refused: write NAME=VALUE"),
        (["--filter", "prefix=a", "--filter", "prefix=b"], "there is another condition on prefix already"),
        (["--filter", "colour=red"], "The filter cannot work: Object contains unknown field `colour`"),
        (["--filter", "least=soon"], "The filter cannot work"),
        (["--filter", "prefix=a"], "There is no terminal to ask at: give --yes."),
    ],
)
def test_what_cannot_be_changed_is_refused(
    shop: ShopOfCommands, retried: type[Worker], words: list[str], sentence: str
) -> None:
    """Exit code 2 with a sentence; nothing is changed."""
    code, out, error = shop.run("kill", retried.queue_name, *words)

    assert (2, "", True) == (code, out, sentence in error), error
    assert 3 == len(shop.app.operate(retried).waiting.list())


def test_a_filter_that_bounds_nothing_deletes_nothing(shop: ShopOfCommands, retried: type[Worker]) -> None:
    """Every waiting job is deleted by --all alone."""
    code, _, error = shop.run("delete", retried.queue_name, "--filter", "least=-inf", "--yes")

    assert (2, True) == (code, "give a filter, or ids" in error), error
    assert 3 == len(shop.app.operate(retried).waiting.list())


def test_a_program_is_asked_beside_its_output(shop: ShopOfCommands, retried: type[Worker], type_in: Type) -> None:
    """With --json the question comes on the error output, so that the output can be read."""
    type_in("yes\n")
    code, out, question = shop.run("delete", retried.queue_name, "fresh", "--json")

    assert (0, 1) == (code, msgspec.json.decode(out, type=ChangeView).changed)
    assert question.startswith("Delete for good 1 job (fresh) waiting in ")


def test_a_pause_and_its_end_have_reasons_too(shop: ShopOfCommands) -> None:
    """And a program reads until when."""
    paused = shop.run("pause", shop.queue, "--seconds", "60", "--reason", "the ERP is closed", "--yes", "--json")
    resumed = shop.run("resume", shop.queue, "--reason", "it is open", "--yes", "--json")

    until = msgspec.json.decode(paused[1])
    assert (0, True, True) == (paused[0], until["paused"], until["until"] > 0)
    assert (0, {"paused": False, "until": None}) == (resumed[0], msgspec.json.decode(resumed[1]))
    assert [("resume", "it is open"), ("pause", "the ERP is closed")] == [
        (one.action, one.reason) for one in past(shop, shop.queue)
    ]


def test_a_dry_run_of_a_requeue_names_the_first_ids_and_counts_all(shop: ShopOfCommands) -> None:
    """People read the first five and how many more there are; a program is told of a hundred."""
    shop.worker.push_many(jobs_of([f"bad {number}" for number in range(120)]))
    shop.app.drain()

    code, out, _ = shop.run("requeue", shop.queue, "--error", "it is", "--dry-run", "--json")
    dry = msgspec.json.decode(out)
    lines = shop.run("requeue", shop.queue, "--error", "it is", "--dry-run")[1].splitlines()
    done = view(shop.run("requeue", shop.queue, "--error", "it is", "--reason", "a test", "--yes", "--json"))

    assert (1, 120, 120, True, 100) == (code, dry["changed"], dry["examined"], dry["dry_run"], len(dry["ids"]))
    assert dry["ids"] == [one["id"] for one in dry["previews"]]
    assert (7, "and 115 more") == (len(lines), lines[5])
    assert "120 ids would wait again, 0 would not; nothing was changed" == lines[6]
    assert (0, 120) == (done[0], done[1].changed)


def test_retries_of_an_error_come_back_at_a_rate(shop: ShopOfCommands, retried: type[Worker]) -> None:
    """A dry run says by when the last is due; so does the change, and the activity has the rate."""
    search = ("run-now", retried.queue_name, "--error", "is broken", "--rate", "0.5")
    before = [job.due_at for job in shop.app.operate(retried).waiting.fetch(["a1", "b1", "fresh"])]

    code, sentence, _ = shop.run(*search, "--dry-run")
    planned = view(shop.run(*search, "--dry-run", "--json"))[1]
    unchanged = [job.due_at for job in shop.app.operate(retried).waiting.fetch(["a1", "b1", "fresh"])]
    done = view(shop.run(*search, "--yes", "--json"))[1]

    first, last = sorted(job.due_at for job in shop.app.operate(retried).waiting.fetch(["a1", "b1"]))
    assert (1, True) == (code, "would be made due, the last of them due by " in sentence), sentence
    assert (2, 2, before) == (planned.changed, done.changed, unchanged)
    assert last == done.last_due
    assert pytest.approx(2.0) == last - first
    assert planned.last_due is not None
    (entry,) = past(shop, retried.queue_name)
    assert "found by: error=is broken, 0.5 a second" == entry.target
    assert "made due 0 jobs, of 3 that were examined\n" == shop.run(*search, "--yes")[1]
    code, _, error = shop.run("run-now", retried.queue_name, "--all", "--start", "in 5s", "--yes")
    assert (2, True) == (code, "A start needs a rate" in error), error
