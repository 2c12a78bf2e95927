"""`lowkiq push`: one job, and the jobs of a file."""

import io
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import msgspec
import pytest

from lowkiq_lambda import BackendUnavailable, Pushed, PushInterrupted, Unique, Worker
from lowkiq_lambda.push.pushes import Pushes
from tests.cli.conftest import TWO_DAYS, ShopOfCommands
from tests.kit.handlers import Notes
from tests.kit.workers import declare

NOTHING_ANSWERS: Final = "Nothing answers at 127.0.0.1:1"


def stored(shop: ShopOfCommands, job_id: str) -> list[object]:
    """The payloads that wait under the id."""
    return [scored.payload for job in shop.app.operate(shop.worker).waiting.fetch([job_id]) for scored in job.payloads]


def lines(path: Path, jobs: Sequence[Any]) -> str:
    """A file with these lines; a text stands as it is."""
    path.write_text("".join(f"{job if isinstance(job, str) else json.dumps(job)}\n" for job in jobs))
    return str(path)


def test_a_job_is_pushed_and_what_became_of_it_is_told(shop: ShopOfCommands) -> None:
    """The first push of an id waits for its time, the second merges; the queue is known by its worker's name, too."""
    first = shop.run("push", shop.queue, "17", '{"state": "paid"}', "--delay", str(TWO_DAYS), "--score", "3")
    second = shop.run("push", "SyncOrder", "17", '"text"', "--score", "4")
    third = shop.run("push", shop.queue, "18")

    assert (0, "17: shard 2, due in 2d\n", "") == first
    assert (0, "17: shard 2, merged with what waits under the id, due in 2d\n", "") == second
    assert (0, "18: shard 0, due now\n", "") == third
    assert [{"state": "paid"}, "text"] == stored(shop, "17")


def test_a_push_tells_programs_all_that_pushed_has(shop: ShopOfCommands) -> None:
    """--json writes the object that push_many returns; a key is pushed once."""
    words = ["push", shop.queue, "17", "--key", "a", "--key-ttl", "60", "--header", "trace=1", "--json"]
    code, out, _ = shop.run(*words)
    repeated = msgspec.json.decode(shop.run(*words)[1], type=Pushed)

    assert (0, "17", False) == (code, (told := msgspec.json.decode(out, type=Pushed)).id, told.merged)
    assert repeated.repeated
    assert "repeated: the key was pushed before" in shop.run(*words[:-1])[1]


def test_a_dropped_job_ends_the_command_as_its_on_conflict_says(shop: ShopOfCommands) -> None:
    """With "raise", of the job or of its worker, it is refused; else it is told that nothing changed."""
    unique = Unique("waiting", on_conflict="raise")
    worker = declare(shop.app, f"{shop.queue}-unique", Notes(), shards_count=1, unique=unique)
    worker.push("17", "first")
    words = ["push", worker.queue_name, "17", "2"]
    declared, dropped = shop.run(*words), shop.run(*words, "--on-conflict", "drop")
    shop.worker.push("17", "first")
    raised = shop.run("push", shop.queue, "17", "2", "--unless", "waiting", "--on-conflict", "raise")

    refusal = (1, "", "error: The job '17' was dropped, as its id has work: waiting.\n")
    told = (0, "17: shard 0, dropped: the id waits, and nothing changed\n", "")
    assert [refusal, told, refusal] == [declared, dropped, raised]
    assert ["first"] == stored(shop, "17")


def test_a_push_to_a_paused_id_tells_so(shop: ShopOfCommands) -> None:
    """It waits for the end of the pause, which may have none."""
    shop.app.operate(shop.worker).pause_jobs(["17"])

    assert (0, "17: shard 2, paused: it waits for the end of the pause\n", "") == shop.run("push", shop.queue, "17")
    assert msgspec.json.decode(shop.run("push", shop.queue, "17", "--json")[1], type=Pushed).paused


@pytest.mark.parametrize("job_id", ["-17", "--all", "a b", "день/№ 7", "*", "'\"\\", "\x1b[31m"])
def test_an_id_of_any_characters_is_pushed_shown_and_deleted(shop: ShopOfCommands, job_id: str) -> None:
    """Behind -- nothing is an option, and what a terminal would obey is shown escaped."""
    pushed = shop.run("push", shop.queue, "--", job_id, "-1")
    shown = shop.run("show", shop.queue, "--", job_id)
    why = shop.run("why", shop.queue, "--", job_id)

    assert [0] * 3 == [code for code, *_ in (pushed, shown, why)]
    assert [-1] == stored(shop, job_id)
    assert "\x1b" not in pushed[1] + shown[1] + why[1]
    assert (0, "deleted 1 job\n", "") == shop.run("delete", shop.queue, "--yes", "--", job_id)


def test_a_payload_comes_from_a_file(shop: ShopOfCommands, tmp_path: Path) -> None:
    """@ and a name: for what is too long or too odd for a shell."""
    (tmp_path / "payload.json").write_text('{"state": "paid"}')

    assert 0 == shop.run("push", shop.queue, "17", f"@{tmp_path / 'payload.json'}")[0]
    assert [{"state": "paid"}] == stored(shop, "17")


def test_a_queue_that_is_not_there_is_answered_with_the_one_that_is_meant(shop: ShopOfCommands) -> None:
    """A misspelt name is no new queue; the sentence has the name that was meant."""
    code, _, told = shop.run("push", "syncorders", "17")

    assert 2 == code
    assert f"error: There is no queue 'syncorders': did you mean SyncOrder? The app has {shop.queue}.\n" == told


def test_what_the_push_refuses_is_a_misuse(shop: ShopOfCommands) -> None:
    """A job that cannot be, such as one for two times, ends with 2 and the words of the push."""
    code, _, told = shop.run("push", shop.queue, "17", "--delay", "1", "--due-at", "2000000000")

    assert (2, True) == (code, told.startswith("error: delay: give due_at (a time) or delay"))


def test_all_jobs_of_a_file_are_pushed(shop: ShopOfCommands, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In calls of many, in the order of the lines, without the empty ones; the summary counts what merged."""
    monkeypatch.setattr("lowkiq_lambda.cli.push_file.JOBS_AT_ONCE", 3)
    name = lines(tmp_path / "jobs.jsonl", [*({"id": "a", "payload": n} for n in range(5)), "", {"id": "b"}])

    told = shop.run("push", shop.queue, "--file", name)
    again = shop.run("push", shop.queue, "--file", name, "--from", "7", "--json")

    assert (0, "6 jobs are written, 4 of them merged, up to line 7\n", "") == told
    counts = {"repeated": 0, "superseded": 0, "paused": 0, "dropped": 0}
    assert (0, {"written": 1, "merged": 1, **counts, "next": 8}) == (again[0], json.loads(again[1]))
    assert [*range(5)] == stored(shop, "a")


def test_a_file_that_ends_before_its_first_line_to_push_is_a_misuse(shop: ShopOfCommands, tmp_path: Path) -> None:
    """A slip in --from is told; the line behind the last one is where a push goes on that had come to the end."""
    name = lines(tmp_path / "jobs.jsonl", [{"id": "a"}, {"id": "b"}])

    at_end = shop.run("push", shop.queue, "--file", name, "--from", "3")
    beyond = shop.run("push", shop.queue, "--file", name, "--from", "4")

    assert (0, "0 jobs are written, up to line 2\n", "") == at_end
    assert (2, "", "error: --from 4 is beyond the end: there are 2 lines. Nothing was pushed.\n") == beyond


def test_the_mark_that_some_editors_put_first_is_no_part_of_a_job(shop: ShopOfCommands, tmp_path: Path) -> None:
    """A file that begins with a byte order mark is read as one without."""
    (tmp_path / "jobs.jsonl").write_text('{"id": "a"}', encoding="utf-8-sig")

    assert 0 == shop.run("push", shop.queue, "--file", str(tmp_path / "jobs.jsonl"))[0]
    assert [""] == stored(shop, "a")


def test_a_file_without_a_name_is_asked_for(shop: ShopOfCommands) -> None:
    """@ alone is no name."""
    assert (2, "", "error: The payload is @ without the name of a file: write @FILE.\n") == shop.run(
        "push", shop.queue, "17", "@"
    )


def test_jobs_come_from_the_standard_input(shop: ShopOfCommands, monkeypatch: pytest.MonkeyPatch) -> None:
    """--file - reads what another program writes."""
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b'{"id": 1}\n{"id": 2}')))

    assert (0, "2 jobs are written, up to line 2\n", "") == shop.run("push", shop.queue, "--file", "-")


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        ("{", "it is not JSON: Input data was truncated"),
        ({"id": 1.5}, "id: must be a str, an int or a UUID, not float"),
        ({"id": 1, "skore": 2}, "skore"),
        ([1], "a job is a mapping with an id, not list"),
    ],
)
def test_a_wrong_line_is_named_and_those_before_it_are_written(
    shop: ShopOfCommands, tmp_path: Path, wrong: object, why: str
) -> None:
    """Nothing before it is lost, nothing behind it is pushed, and the file goes on where the error says."""
    name = lines(tmp_path / "jobs.jsonl", [{"id": "a"}, {"id": "b"}, wrong, {"id": "c"}])
    code, out, told = shop.run("push", shop.queue, "--file", name)
    lines(tmp_path / "jobs.jsonl", [{"id": "a"}, {"id": "b"}, {"id": "x"}, {"id": "c"}])

    assert (2, "") == (code, out)
    assert told.startswith("error: line 3: ")
    assert why in told
    assert told.endswith("2 jobs are written; correct it, and go on with --from 3.\n")
    assert [[""], [""], []] == [stored(shop, job_id) for job_id in "abc"]
    assert "2 jobs are written, up to line 4\n" == shop.run("push", shop.queue, "--file", name, "--from", "3")[1]
    assert [[""]] * 4 == [stored(shop, job_id) for job_id in "abxc"]


def breaking(error: BaseException, after: int) -> Any:
    """The app's push, which raises the error at the call behind so many."""
    real, calls = Pushes.push_or_raise, list[int]()

    def push(pushes: Pushes, worker: type[Worker], jobs: Any) -> list[Pushed]:
        calls.append(len(jobs))
        if len(calls) > after:
            raise error
        return real(pushes, worker, jobs)

    return push


@pytest.mark.parametrize(
    ("error", "ended"),
    [
        (BackendUnavailable(NOTHING_ANSWERS), (3, "2 jobs are written; go on with --from 3.")),
        (KeyboardInterrupt(), (130, "2 jobs are written; go on with --from 3, which may push up to 2 jobs again")),
    ],
)
def test_a_file_that_broke_off_says_where_to_go_on(
    shop: ShopOfCommands, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: BaseException, ended: tuple[int, str]
) -> None:
    """Whatever ends it, what is written is counted, and the first line that may not be is named."""
    monkeypatch.setattr("lowkiq_lambda.cli.push_file.JOBS_AT_ONCE", 2)
    monkeypatch.setattr(Pushes, "push_or_raise", breaking(error, after=1))
    name = lines(tmp_path / "jobs.jsonl", [{"id": job_id} for job_id in "abcd"])

    code, out, told = shop.run("push", shop.queue, "--file", name)

    assert (ended[0], "") == (code, out)
    assert ended[1] in told


def test_a_call_that_was_written_in_part_is_told_by_lines(
    shop: ShopOfCommands, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is written behind the first line that is not would be pushed again, and the error says how much that is."""
    error = PushInterrupted("broken", written=[0, 3], not_written=[1], unknown=[2])
    error.__cause__ = BackendUnavailable(NOTHING_ANSWERS)
    monkeypatch.setattr(Pushes, "push_or_raise", breaking(error, after=0))
    name = lines(tmp_path / "jobs.jsonl", ["", *({"id": job_id} for job_id in "abcd")])

    code, _, told = shop.run("push", shop.queue, "--file", name)

    assert 3 == code
    assert (
        "2 jobs are written, of 1 more it is not known; go on with --from 3, which pushes 1 that are written again"
        in told
    )


def test_a_server_that_is_away_is_told_apart(shop: ShopOfCommands) -> None:
    """Exit code 3: the same command may work a little later."""
    shop.app.core.configure(redis_url="redis://127.0.0.1:1/0", redis_timeout=0.1)

    code, out, told = shop.run("push", shop.queue, "17")

    assert (3, "", True) == (code, out, told.startswith(f"error: {NOTHING_ANSWERS}"))
