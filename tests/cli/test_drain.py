"""`lowkiq drain`: outcomes, and the exit code that says whether anything died."""

import json
import signal
import subprocess
import sys
from pathlib import Path
from threading import Event, Thread
from typing import Final

import pytest

from lowkiq_lambda import Batch, Config, Lowkiq, Worker
from tests.cli.conftest import ShopOfCommands
from tests.kit.apps import closing_app
from tests.kit.daemons import clean_environment
from tests.kit.servers import Server
from tests.kit.workers import jobs_of


def test_outcomes_are_counted_and_a_death_is_a_failure(shop: ShopOfCommands) -> None:
    """Where all went well it ends with 0; where a job died with 1."""
    shop.worker.push_many(jobs_of("abc"))
    well = shop.run("drain", "--seconds", "60")
    shop.worker.push_many(jobs_of(["bad", "d"]))
    died = shop.run("drain", "--queue", "SyncOrder", "--json", "--log-level", "critical")

    assert (0, "done       3\n", "") == well
    assert (1, {"done": 1, "dead": 1, "failed": 1}, "") == (died[0], json.loads(died[1]), died[2])
    assert (0, "nothing was due\n", "") == shop.run("drain")


def test_only_the_queue_that_is_asked_for_is_drained(shop: ShopOfCommands) -> None:
    """The jobs of the others wait."""
    other = shop.app.worker(queue_name=f"{shop.queue}-other")(lambda _batch: None)
    shop.worker.push_many(jobs_of("ab"))
    other.push_many(jobs_of("cd"))

    assert (0, "done       2\n", "") == shop.run("drain", "--queue", f"{shop.queue}-other")
    assert {"done": 2} == shop.app.drain()


def test_a_handler_that_exits_is_no_end_of_the_command(shop: ShopOfCommands) -> None:
    """sys.exit() in a handler does not decide the exit code of the drain: it is told, and it is a failure."""

    def leave(_batch: Batch) -> None:
        raise SystemExit(0)

    leaving = shop.app.worker(queue_name=f"{shop.queue}-leaving")(leave)
    leaving.push_many(jobs_of("a"))

    code, out, told = shop.run("drain", "--log-level", "critical")

    assert (1, "") == (code, out)
    assert "error: A handler has ended the drain of its shard by SystemExit: 0.\n" == told


def test_an_exit_without_a_text_is_told_by_its_kind(shop: ShopOfCommands) -> None:
    """No colon stands before nothing."""

    def leave(_batch: Batch) -> None:
        raise GeneratorExit

    shop.app.worker(queue_name=f"{shop.queue}-leaving")(leave).push_many(jobs_of("a"))

    code, _, told = shop.run("drain", "--log-level", "critical")

    assert (1, "error: A handler has ended the drain of its shard by GeneratorExit.\n") == (code, told)


def test_a_shard_that_another_process_holds_is_not_told_as_nothing_due(shop: ShopOfCommands) -> None:
    """Who drains a moment after a process has died reads why nothing was performed."""
    began, may_end = Event(), Event()

    def hold(_batch: Batch) -> None:
        began.set()
        may_end.wait(60)

    with closing_app(Lowkiq(Config(redis_url=shop.app.core.connections.url))) as other:
        body = {"queue_name": shop.queue, "shards_count": 3, "max_retry_count": 0}
        other.worker(type("SyncOrder", (Worker,), {**body, "perform": lambda _self, batch: hold(batch)}))
        shop.worker.push_many(jobs_of("a"))
        holder = Thread(target=other.drain)
        holder.start()
        assert began.wait(60)
        drained = shop.run("drain")
        may_end.set()
        holder.join()

    why = "another process holds a shard, or died with it a moment ago"
    assert (0, f"nothing was performed: {why} ({shop.queue})\n", "") == drained


def test_ctrl_c_gives_back_what_ran(shop: ShopOfCommands) -> None:
    """It ends with 130, and the job runs the next time."""
    calls = list[str]()

    def interrupted(batch: Batch) -> None:
        calls.extend(batch)
        if len(calls) == 1:
            raise KeyboardInterrupt

    worker = shop.app.worker(queue_name=f"{shop.queue}-long")(interrupted)
    worker.push_many(jobs_of("a"))

    assert 130 == shop.run("drain", "--log-level", "critical")[0]
    assert ["a"] == [job.id for job in shop.app.operate(worker).waiting.fetch(["a"])]


@pytest.mark.parametrize("words", [["--queue", "Nobody"], ["--seconds", "nan"]])
def test_what_cannot_be_drained_is_refused(shop: ShopOfCommands, words: list[str]) -> None:
    """A queue that is not there, and no number."""
    assert 2 == shop.run("drain", *words)[0]


WAITING: Final = """
import os, threading
from lowkiq_lambda import Lowkiq

app = Lowkiq()

@app.worker(queue_name=os.environ["QUEUE"])
def wait(batch):
    print("begun", flush=True)
    threading.Event().wait()
"""


@pytest.mark.parametrize(("ending", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_a_drain_that_is_told_to_end_gives_back_what_runs(
    server: Server, queue_name: str, tmp_path: Path, ending: signal.Signals, code: int
) -> None:
    """TERM, which cron and containers send, is as Ctrl-C: the job waits again at once, as it was before."""
    (tmp_path / "waiting.py").write_text(WAITING)
    environment = {
        **clean_environment(),
        "LOWKIQ_REDIS_URL": server.url,
        "QUEUE": queue_name,
    }
    with closing_app(Lowkiq(Config(redis_url=server.url))) as app:
        worker = app.worker(queue_name=queue_name)(lambda _batch: None)
        worker.push_many(jobs_of("a"))
        drain = subprocess.Popen(
            [sys.executable, "-m", "lowkiq_lambda", "drain", "--app", "waiting:app", "--log-level", "error"],
            cwd=tmp_path,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        with drain:
            assert drain.stdout is not None
            assert "begun\n" == drain.stdout.readline()
            drain.send_signal(ending)
            _, told = drain.communicate(timeout=60)

        (job,) = app.operate(worker.worker).waiting.fetch(["a"])
        assert (code, "") == (drain.returncode, told)
        assert -1 == job.retry_count
        assert {"done": 1} == app.drain()
