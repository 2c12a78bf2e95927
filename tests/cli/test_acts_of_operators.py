"""`lowkiq evict`, `tasks`, and the `schedules` of a server: what they ask, change and tell."""

import json
from typing import Any

import msgspec
import pytest

from lowkiq_lambda.cli.evict import EvictedHolder
from lowkiq_lambda.operate.inspect.activity import OF_NO_QUEUE, read_activity
from lowkiq_lambda.operate.presentation.schedules import EntryResponse
from lowkiq_lambda.operate.presentation.tasks import ItemPageResponse, TaskReader, TaskResponse
from tests.cli.conftest import TWO_DAYS, ShopOfCommands, Type
from tests.kit.handlers import Notes
from tests.kit.handlers import failing as failing_ids
from tests.kit.workers import declare, jobs_of


def acts(shop: ShopOfCommands, queue: str) -> list[tuple[str, str, int, str]]:
    """Act, target, number and reason of what the activity has of a queue, newest first."""
    past = read_activity(shop.app.core.backend, 0.0, [queue], 500)
    return [(one.action, one.target, one.changed, one.reason) for one in past]


def test_a_holder_is_evicted_by_its_shard_or_by_a_job_that_it_has(shop: ShopOfCommands, type_in: Type) -> None:
    """The holder is named in the question; a second order finds it gone."""
    name, ended = f"{shop.queue}-long", list[tuple[int, str, str]]()

    def order(_batch: Any) -> None:
        ended.append(shop.run("evict", name, "--id", "a"))
        type_in("no\n")
        ended.append(shop.run("evict", name, "0"))
        ended.append(shop.run("evict", name, "--id", "a", "--yes", "--json", "--reason", "it hangs"))

    running = declare(shop.app, name, order)
    running.push_many(jobs_of("a"))
    shop.app.drain()

    unasked, refused, done = ended
    view = msgspec.json.decode(done[1], type=EvictedHolder)
    assert 2 == unasked[0]
    assert f", which holds shard 0 of {name}, for " in unasked[2]
    assert ", with 1 id in flight, at " in unasked[2]
    assert 1 == refused[0]
    assert refused[1].endswith("Nothing was changed.\n")
    assert (0, name, 0, True) == (done[0], view.queue, view.shard, view.evicted)
    ((act, target, number, reason),) = acts(shop, name)
    assert ("evict", 1, "it hangs") == (act, number, reason)
    assert target.startswith("holder ")
    assert target.endswith(" of shard 0")


def test_nobody_is_evicted_where_nobody_holds(shop: ShopOfCommands) -> None:
    """A shard that is free, an id that is not in flight, a shard that there is not."""
    shop.worker.push_many(jobs_of(["1"]))

    answers = [shop.run("evict", shop.queue, *words, "--yes") for words in (["0"], ["--id", "1"], ["3"], [])]

    assert [
        (1, f"shard 0 of {shop.queue} has no holder: nothing was changed\n"),
        (1, f"no job of the id 1 is in flight in {shop.queue}: nothing was changed\n"),
        (2, f"error: The shards of {shop.queue} have the numbers 0 to 2.\n"),
        (2, "error: Give the number of a shard, or --id: one of the two.\n"),
    ] == [(code, error) for code, _, error in answers]
    assert [] == acts(shop, shop.queue)


def test_a_task_tells_how_far_it_is_and_what_failed(shop: ShopOfCommands) -> None:
    """In the list, alone, and by its items; a program reads what the API has."""
    worker = declare(shop.app, f"{shop.queue}-tasks", Notes(failing_ids("2")), max_retry_count=0)
    with shop.app.task("import of May") as task:
        task.push_many(worker, [{"id": "1"}, {"id": "2", "item": "line 2"}])
    shop.app.drain()

    listed, one = shop.run("tasks", "--limit", "1000"), shop.run("tasks", task.id)
    progress = json.loads(shop.run("tasks", task.id, "--json")[1])
    items = json.loads(shop.run("tasks", task.id, "--items", "dead", "--json")[1])

    # Other tests have made tasks on the same server.
    assert (0, True) == (listed[0], " task" in listed[2])
    assert [task.id, "import", "of", "May", "completed", "2"] in [line.split()[:6] for line in listed[1].splitlines()]
    lines = one[1].splitlines()
    assert ["import of May: completed, 2 of 2 items have ended (100%)", "  1 dead, 1 done"] == lines[:2]
    assert lines[-1].startswith(f"  dead  {worker.queue_name} 2 (line 2): ")
    assert (2, 2, 1, "completed") == (
        progress["total"],
        progress["ended"],
        progress["counts"]["dead"],
        progress["state"],
    )
    assert [(worker.queue_name, "2", "line 2")] == [(it["queue"], it["id"], it["label"]) for it in items["items"]]
    assert task.id in {one["id"] for one in json.loads(shop.run("tasks", "--limit", "1000", "--json")[1])["tasks"]}
    watched = shop.run("tasks", task.id, "--watch", "--json")[1].splitlines()
    assert [task.id] == [json.loads(line)["id"] for line in watched]


def test_a_task_is_cancelled_after_a_yes(shop: ShopOfCommands, type_in: Type) -> None:
    """What waits of it is deleted; the activity has why."""
    task = shop.app.task("wrong file")
    task.push_many(shop.worker, jobs_of(["1", "2"]))

    unasked = shop.run("tasks", task.id, "--cancel")
    type_in("yes\n")
    done = shop.run("tasks", task.id, "--cancel", "--reason", "the wrong file")

    url = shop.app.core.connections.url
    question = f"Cancel the task wrong file ({task.id}), of which 2 of its 2 items wait, at {url}?"
    assert (2, True) == (unasked[0], question in unasked[2])
    assert (0, f"{question} Only 'yes' will do: cancelled 2 items\n") == done[:2]
    assert ("cancel", f"task 'wrong file' {task.id}", 2, "the wrong file") in acts(shop, OF_NO_QUEUE)
    assert [] == shop.app.operate(shop.worker).waiting.fetch(["1", "2"])


def test_a_task_names_the_open_tasks_below_it_and_its_cancel_counts_their_items(shop: ShopOfCommands) -> None:
    """Else a task whose own items have ended would seem to be stuck, and its cancel to do nothing."""
    with shop.app.task("parent") as parent, parent.task("child") as child, child.task("grandchild") as grandchild:
        parent.push_many(shop.worker, jobs_of(["1"]))
        child.push_many(shop.worker, [{"id": number, "delay": TWO_DAYS} for number in range(2, 6)])
        grandchild.push_many(shop.worker, [{"id": "6", "delay": TWO_DAYS}])
    shop.app.drain()

    told = shop.run("tasks", parent.id)[1].splitlines()[0]
    asked = shop.run("tasks", parent.id, "--cancel")[2]
    done = shop.run("tasks", parent.id, "--cancel", "--yes")
    after = shop.run("tasks", parent.id)[1].splitlines()[0]

    ended = "1 of 1 items have ended (100%)"
    assert f"parent: closed, {ended}; 1 task below it is open: {child.id}" == told
    assert f"({parent.id}) and 2 open tasks below it, of which 5 of the 6 items wait, at " in asked
    assert (0, "cancelled 5 items\n") == done[:2]
    assert ("cancel", f"task 'parent' {parent.id}", 5, "") in acts(shop, OF_NO_QUEUE)
    assert f"parent: cancelled, {ended}" == after


def test_a_cancel_of_many_items_of_tasks_below_needs_a_reason(shop: ShopOfCommands) -> None:
    """As one of as many of its own does."""
    with shop.app.task("parent") as parent, parent.task("child") as child:
        child.push_many(shop.worker, [{"id": number, "delay": TWO_DAYS} for number in range(101)])

    code, _, told = shop.run("tasks", parent.id, "--cancel", "--yes")

    assert (2, True, 101) == (code, "this is on 101" in told, child.progress().counts["enqueued"])


def test_a_program_reads_of_tasks_what_the_api_has(shop: ShopOfCommands) -> None:
    """The same names of fields, by the same code."""
    worker = declare(shop.app, f"{shop.queue}-tasks", Notes(failing_ids("2")), max_retry_count=0)
    with shop.app.task("import of May") as task:
        task.push_many(worker, [{"id": "1"}, {"id": "2", "item": "line 2"}])
    shop.app.drain()
    reader = TaskReader(shop.app.tasks)

    one = shop.run("tasks", task.id, "--json")[1]
    items = shop.run("tasks", task.id, "--items", "dead", "--json")[1]
    listed = shop.run("tasks", "--json")[1]

    assert reader.one(task.id, 10) == msgspec.json.decode(one, type=TaskResponse)
    assert [("line 2", "2")] == [(error["label"], error["id"]) for error in json.loads(one)["errors"]]
    assert reader.items(task.id, "dead", None, 100) == msgspec.json.decode(items, type=ItemPageResponse)
    assert {"version", "next_poll", "tasks", "next"} == json.loads(listed).keys()


def test_what_runs_of_a_task_is_asked_to_stop(shop: ShopOfCommands) -> None:
    """Its item is cancelled when the run ends, unless that ends well."""
    task = shop.app.task("wrong file")
    told: list[tuple[int, str, str]] = []

    def perform(_batch: Any) -> None:
        told.append(shop.run("tasks", task.id, "--cancel", "--running", "--yes"))
        raise ValueError("broken")

    worker = declare(shop.app, f"{shop.queue}-long", perform)
    task.push_many(worker, jobs_of(["1"]))
    shop.app.drain()

    words = "cancelled 0 items; 1 still run, and are asked to stop unless others pushed them too\n"
    assert ([(0, words, "")], 1) == (told, task.progress().counts["cancelled"])


@pytest.mark.parametrize(
    ("words", "code", "sentence"),
    [
        (["tasks", "0000000000000000"], 1, "there is no task 0000000000000000"),
        (["tasks", "no such id"], 1, "there is no task no such id"),
        (["tasks", "--cancel"], 2, "TASK is missing"),
        (["tasks", "0000000000000000", "--cancel", "--watch"], 2, "three things"),
        (["tasks", "0000000000000000", "--running"], 2, "--running is a part of --cancel"),
        (["tasks", "--after", "x"], 2, "is not the `next` of a page of tasks"),
    ],
)
def test_tasks_that_are_not_there(shop: ShopOfCommands, words: list[str], code: int, sentence: str) -> None:
    """A sentence, and the exit code that says whether the command or the task is wrong."""
    ended = shop.run(*words)

    assert (code, True) == (ended[0], sentence in ended[2]), ended


def entries(answer: tuple[int, str, str]) -> list[EntryResponse]:
    """What a program reads of a list of entries."""
    assert 0 == answer[0], answer
    return msgspec.json.decode(answer[1], type=list[EntryResponse])


def test_an_entry_is_put_listed_run_switched_and_removed(shop: ShopOfCommands) -> None:
    """Each act by its own words, and each a line of the activity."""
    queue = shop.queue
    shop.app.every(600, shop.worker, id="poll", name="poll")

    put = shop.run(
        *("schedules", "put", queue, "nightly", "--id", "all", "--cron", "0 3 * * *", "--tz", "Europe/Berlin"),
        *("--payload", '{"full": true}', "--yes", "--json"),
    )
    listed = shop.run("schedules", "list", queue)
    ran = shop.run("schedules", "run", queue, "nightly", "--yes", "--json")
    off = shop.run("schedules", "off", queue, "nightly", "poll", "--reason", "the ERP is closed", "--yes")
    dark = entries(shop.run("schedules", "list", "--json"))
    again = shop.run("schedules", "on", queue, "--all", "--yes")
    light = entries(shop.run("schedules", "list", queue, "--json"))
    gone = shop.run("schedules", "remove", queue, "nightly", "--yes")

    entry = msgspec.json.decode(put[1], type=EntryResponse)
    assert ("nightly", "all", "run time", True) == (entry.name, entry.id, entry.source, entry.is_on)
    assert (0, "2 entries\n") == (listed[0], listed[2])
    head, *rows = listed[1].splitlines()
    assert ["QUEUE", "NAME", "TIMES", "ID", "LAST", "NEXT", "STATE"] == head.split()
    assert ["nightly", "poll"] == [row.split()[1] for row in rows]
    assert "Europe/Berlin" in rows[0]
    assert (0, "all", False) == (ran[0], json.loads(ran[1])["id"], json.loads(ran[1])["merged"])
    (job,) = shop.app.operate(shop.worker).waiting.fetch(["all"])
    assert {"full": True} == job.payloads[0].payload
    assert (0, "switched off 2 of 2 entries\n") == off[:2]
    assert [False, False] == [one.is_on for one in dark]
    assert (0, "switched on 2 of 2 entries\n") == again[:2]
    assert [True, True] == [one.is_on for one in light]
    assert (0, "removed schedule entry 'nightly'\n") == gone[:2]
    assert ["poll"] == [one.name for one in entries(shop.run("schedules", "list", "--json"))]
    assert [
        ("remove", "schedule entry 'nightly'", 1, ""),
        ("enable", "all schedule entries", 2, ""),
        ("disable", "schedule entries 'nightly', 'poll'", 2, "the ERP is closed"),
        ("run now", "schedule entry 'nightly'", 1, ""),
        ("put", "schedule entry 'nightly', cron 0 3 * * *, tz Europe/Berlin", 1, ""),
    ] == acts(shop, queue)


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["run", "nobody"], "nobody"),
        (["on", "nobody"], "nobody"),
        (["remove", "nobody"], "nobody"),
        (["off"], "Give names of entries, or --all"),
        (["put", "x", "--id", "1"], "one of cron, every and at"),
        (["put", "x", "--id", "1", "--every", "often"], "--every often is refused: 'often' is not a length of time"),
        (["put", "x", "--id", "1", "--at", "soon"], "--at soon is refused"),
        (["put", "x", "--id", "1", "--cron", "* *"], "cron"),
        (["put", "x", "--id", "1", "--every", "10m", "--payload", "{"], "--payload { is refused"),
    ],
)
def test_entries_that_cannot_be_are_refused(shop: ShopOfCommands, words: list[str], sentence: str) -> None:
    """Exit code 2, in a sentence; nothing is put, switched or noted."""
    act, *others = words
    code, out, error = shop.run("schedules", act, shop.queue, *others, "--yes")

    assert (2, "", True) == (code, out, sentence in error), error
    assert [] == acts(shop, shop.queue)
    assert [] == shop.app.schedules.all(shop.worker)


def test_all_entries_of_a_queue_are_run_and_removed(shop: ShopOfCommands) -> None:
    """The question lists them; those that are off do not run, and those of code stay."""
    queue = shop.queue
    shop.app.every(600, shop.worker, id="poll", name="poll")
    for name, off in (("nightly", []), ("weekly", ["--off"])):
        shop.run("schedules", "put", queue, name, "--id", name, "--cron", "0 3 * * *", "--yes", *off)

    asked = [shop.run("schedules", act, queue, "--all") for act in ("run", "remove")]
    ran = shop.run("schedules", "run", queue, "--all", "--yes")
    again = shop.run("schedules", "run", queue, "--all", "--yes", "--json")
    gone = shop.run("schedules", "remove", queue, "--all", "--yes")
    empty = shop.run("schedules", "remove", queue, "--all", "--yes", "--json")
    neither = [
        shop.run("schedules", act, queue, *more, "--yes") for act in ("run", "remove") for more in ([], ["x", "--all"])
    ]

    questions = (
        f"Push the jobs of 2 schedule entries ('nightly', 'poll'), those that are on, of {queue} at ",
        f"Remove 2 schedule entries ('nightly', 'weekly'), with history, of {queue} at ",
    )
    assert [(2, True)] * 2 == [
        (code, question in error) for question, (code, _, error) in zip(questions, asked, strict=True)
    ]
    assert (0, "pushed the jobs of 2 entries\n") == ran[:2]
    assert [("nightly", True), ("poll", True)] == sorted((one["id"], one["merged"]) for one in json.loads(again[1]))
    assert (
        0,
        "removed 2 schedule entries ('nightly', 'weekly'); of code, and so kept: 'poll'\n",
    ) == gone[:2]
    assert {"removed": [], "kept": ["poll"]} == json.loads(empty[1])
    assert [(2, True)] * 4 == [(code, "Give the name of an entry, or --all" in error) for code, _, error in neither]
    assert [("remove", 0), ("remove", 2), ("run now", 2), ("run now", 2)] == [
        (action, count) for action, _, count, _ in acts(shop, queue)[:4]
    ]
