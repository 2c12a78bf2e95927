"""`lowkiq runs`: what ran at 03:12."""

import json
import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any, NoReturn, TypeAlias

import msgspec
import pytest

from lowkiq_lambda import Config, KeepRuns, Lowkiq, Worker
from lowkiq_lambda.base.errors import BackendUnavailable
from lowkiq_lambda.operate.inspect.runs import NewRuns
from lowkiq_lambda.operate.presentation.runs import RunsView
from lowkiq_lambda.store.shard.run_entries import unpacked
from tests.cli.conftest import MODULE, ShopOfCommands, Type, handle
from tests.kit.apps import closing_app
from tests.kit.workers import jobs_of


@pytest.fixture
def worker(shop: ShopOfCommands) -> type[Worker]:
    """A worker of the shop that keeps runs, and has run three ids."""
    body = {"queue_name": f"{shop.queue}-kept", "keep_runs": 100, "shards_count": 1, "batch_size": 10}
    declared: type[Worker] = shop.app.worker(
        type("KeptOrder", (Worker,), {**body, "perform": lambda _self, batch: handle(batch)})
    )
    declared.push_many(jobs_of(["bad 1", "17", "18"]))
    shop.app.drain()
    return declared


def yesterdays(app: Lowkiq, worker: type[Worker], at: float) -> None:
    """Let the runs that are kept have begun at that time, and be settled a second later."""
    (shard,) = app.core.queues.agreed(worker).shards
    key = shard.key("runs")
    client: Any = app.core.backend.client
    ((_, fields),) = client.xrange(key)
    packed = msgspec.structs.replace(unpacked(fields[b"r"]), base=at).packed()
    client.delete(key)
    client.xadd(key, {"n": 3, "r": packed}, f"{int(at * 1000) + 1000}-0")


def test_what_ran_at_a_moment_of_yesterday(shop: ShopOfCommands, worker: type[Worker]) -> None:
    """A line for each run; a minute away from it there is none."""
    moment = datetime.now(UTC).replace(hour=3, minute=12, second=0, microsecond=0) - timedelta(days=1)
    yesterdays(shop.app, worker, moment.timestamp())

    code, out, remarks = shop.run("runs", "KeptOrder", "--at", "03:12 yesterday", "--around", "5m")

    assert 0 == code
    assert [["done", "17"], ["done", "18"], ["retried", "bad"]] == sorted(
        line.split()[5:7] for line in out.splitlines()
    )
    assert all(line.startswith(f"{moment:%Y-%m-%d} 03:12:00 UTC  ") for line in out.splitlines())
    assert "ValueError: it is bad" in out
    assert "3 runs; none is missing since" in remarks
    assert "" == shop.run("runs", "KeptOrder", "--at", "03:14 yesterday")[1]
    assert 3 == len(shop.run("runs", "KeptOrder", "--at", "03:12:30 yesterday")[1].splitlines())


def test_programs_get_what_the_api_has(shop: ShopOfCommands, worker: type[Worker]) -> None:
    """By outcome, by id, since a moment, and on pages."""

    def view(*words: str) -> RunsView:
        return msgspec.json.decode(shop.run("runs", "KeptOrder", "--json", *words)[1], type=RunsView)

    assert {"bad 1": "retried", "17": "done", "18": "done"} == {run.id: run.outcome for run in view().runs}
    assert ["bad 1"] == [run.id for run in view("--outcome", "retried", "--since", "1h ago").runs]
    assert ["17"] == [run.id for run in view("--id", "17").runs]
    assert [] == view("--took-over", "10s").runs == view("--until", "1h ago").runs
    failed = view("--outcome", "retried").runs[0]
    assert [failed] == view("--fingerprint", str(failed.fingerprint)).runs
    first = view("--limit", "2")
    assert 1 == len(view("--after", str(first.next)).runs)
    assert worker.queue_name != shop.queue


def test_since_a_release(shop: ShopOfCommands, worker: type[Worker]) -> None:
    """What has failed since r418 began: processes note their release when they begin to drain."""
    settings: dict[str, Any] = {"redis_url": shop.app.config.redis_url, "namespace": f"n{time.time_ns()}"}
    for release in ("r417", "r418"):
        with closing_app(Lowkiq(Config(**settings, release=release))) as app:
            again: type[Worker] = app.worker(
                type("KeptOrder", (Worker,), {**vars(worker), "app": None, "keep_runs": 100})
            )
            again.push_many(jobs_of(["bad of " + release]))
            app.drain()
            sys.modules[MODULE].app = app  # type: ignore[attr-defined]  # the module of the shop

            code, out, _ = shop.run("runs", "KeptOrder", "--since-release", release)
            assert (0, 1) == (code, len(out.splitlines()))
            assert f"bad of {release}" in out
            assert release in out
            assert release == app.operate.releases()[0].name
    assert ["r418", "r417"] == [release.name for release in sys.modules[MODULE].app.operate.releases()]
    code, _, error = shop.run("runs", "KeptOrder", "--since-release", "r9")
    assert (2, True) == (code, "no process has had the release 'r9'; the last ones are: r418, r417" in error)


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--at", "quarter past"], "'quarter past' is not a moment: give"),
        (["--at", "25:00"], "'25:00' is not a time of day"),
        (["--at", "03:12", "--since", "03:00"], "--at says when"),
        (["--around", "5m"], "--around goes with --at"),
        (["--since", "now", "--since-release", "r1"], "Give --since or --since-release, not both"),
        (["--took-over", "long"], "'long' is not a length of time: give 10s, 5m, 2h or 1d"),
        (["--after", "x"], "is not the `next` of a page"),
    ],
)
def test_what_cannot_be_is_refused_in_a_sentence(
    shop: ShopOfCommands, worker: type[Worker], words: list[str], sentence: str
) -> None:
    """Exit code 2, and how it is written."""
    code, _, error = shop.run("runs", worker.queue_name, *words)

    assert (2, True) == (code, sentence in error), error


def test_a_queue_that_keeps_none_says_so(shop: ShopOfCommands) -> None:
    """And what to write into its class."""
    code, out, remarks = shop.run("runs", shop.queue)

    assert (0, "") == (code, out)
    assert "note: SyncOrder keeps no runs: set keep_runs = 10_000 in its class." in remarks
    assert {"runs": [], "next": None, "kept_since": None} == {
        name: value
        for name, value in json.loads(shop.run("runs", shop.queue, "--json")[1]).items()
        if name in {"runs", "next", "kept_since"}
    }


@pytest.fixture
def kept(shop: ShopOfCommands) -> type[Worker]:
    """A worker of the shop that keeps the payloads of its runs, and has run two ids."""
    body = {"queue_name": f"{shop.queue}-payloads", "keep_runs": KeepRuns(100, payloads=True), "shards_count": 1}
    declared: type[Worker] = shop.app.worker(
        type("KeptPayloads", (Worker,), {**body, "perform": lambda _self, batch: handle(batch)})
    )
    declared.push_many(jobs_of(["17", "18"], payload="x"))
    shop.app.drain()
    return declared


def test_a_replay_asks_and_a_dry_run_does_not(shop: ShopOfCommands, kept: type[Worker], type_in: Type) -> None:
    """What is touched is named; only yes will do; the same command twice adds nothing."""
    words = ["replay", kept.queue_name, "--since", "1h ago", "--until", "now"]

    code, out, _ = shop.run(*words, "--dry-run")
    assert (1, True) == (code, "2 payloads of 2 ids that ran from " in out)
    assert 1 == json.loads(shop.run(*words, "--dry-run", "--json", "--id-prefix", "17")[1])["payloads"]
    code, _, error = shop.run(*words)
    assert (2, True) == (code, f" at {shop.app.core.connections.url}" in error)
    type_in("y\n")
    assert (1, True) == ((answer := shop.run(*words))[0], answer[1].endswith("Nothing was changed.\n"))
    assert 0 == len(shop.app.operate(kept).waiting.list("id"))

    assert (0, "pushed 2 payloads\n") == shop.run(*words, "--yes", "--rate", "5")[:2]
    assert 2 == len(shop.app.operate(kept).waiting.list("id"))
    assert "2 of them pushed by an earlier replay" in shop.run(*words, "--yes")[1]
    assert "there is nothing to replay" in shop.run(*words, "--id-prefix", "99")[1]


def test_a_replay_without_payloads_is_refused(shop: ShopOfCommands, worker: type[Worker]) -> None:
    """With what to declare."""
    code, _, error = shop.run("replay", worker.queue_name, "--since", "1h ago", "--until", "now")

    assert (2, True) == (code, "keep no payloads: keep_runs = KeepRuns(10_000, payloads=True)." in error)


class Pauses:
    """The pauses of a tail, in each of which something happens; Ctrl-C follows the last."""

    def __init__(self, *steps: Callable[[], object]) -> None:
        self._left = iter([*steps, self._end])

    def __call__(self) -> "Pauses":
        """The event that the command makes."""
        return self

    def wait(self, _seconds: float) -> None:
        """Take the next step."""
        next(self._left)()

    @staticmethod
    def _end() -> None:
        raise KeyboardInterrupt


Tail: TypeAlias = Callable[..., tuple[int, str, str]]


@pytest.fixture
def tail(shop: ShopOfCommands, worker: type[Worker], monkeypatch: pytest.MonkeyPatch) -> Tail:
    """`lowkiq tail` with these words, between whose looks these ids run, and these steps are taken."""

    def run(words: list[str], *steps: Callable[[], object] | str) -> tuple[int, str, str]:
        def perform(job_id: str) -> None:
            worker.push_many(jobs_of([job_id]))
            shop.app.drain()

        taken = [partial(perform, step) if isinstance(step, str) else step for step in steps]
        monkeypatch.setattr("lowkiq_lambda.cli.runs.Event", Pauses(*taken))
        return shop.run("tail", *words)

    return run


def test_a_tail_prints_each_run_once_as_it_ends(tail: Tail) -> None:
    """What ran before is left out; Ctrl-C is how it ends; of several queues those that keep no runs are named."""
    code, out, remarks = tail(["KeptOrder"], "19", lambda: None, "bad 2")

    assert (0, "") == (code, remarks)
    assert [["done", "19"], ["retried", "bad"]] == [line.split()[5:7] for line in out.splitlines()]
    assert out.endswith("ValueError: it is bad\n")

    code, out, remarks = tail([], "20")
    assert (0, 1) == (code, out.count(" done "))
    assert "-kept  20" in out
    assert "note: without SyncOrder: set keep_runs = 10_000" in remarks


def test_a_tail_selects_and_writes_lines_for_programs(tail: Tail, worker: type[Worker]) -> None:
    """By the options of `lowkiq runs`; an object has the queue, and what the API has of a run."""
    code, out, _ = tail(["KeptOrder", "--json", "--outcome", "retried"], "19", "bad 3", "20")

    (line,) = map(json.loads, out.splitlines())
    assert (0, worker.queue_name, "bad 3", "retried") == (code, line["queue"], line["id"], line["outcome"])
    assert "ValueError: it is bad" == line["error"]
    code, _, error = tail(["KeptOrder", "--outcome", "bad"])
    assert (2, True) == (code, "'bad' is not an outcome of runs" in error)


def test_a_tail_goes_on_where_it_was_when_redis_is_back(tail: Tail, monkeypatch: pytest.MonkeyPatch) -> None:
    """It says once that Redis is away, and leaves no run out; one that cannot begin ends at once."""
    look = NewRuns.look

    def away(*_: object) -> NoReturn:
        raise BackendUnavailable("Redis cannot be reached.")

    code, out, remarks = tail(
        ["KeptOrder"],
        lambda: monkeypatch.setattr(NewRuns, "look", away),
        "19",
        "20",
        lambda: monkeypatch.setattr(NewRuns, "look", look),
    )

    assert (0, 2) == (code, out.count(" done "))
    assert 1 == remarks.count("Redis cannot be reached. It goes on when Redis answers.")
    monkeypatch.setattr(NewRuns, "look", away)
    assert (3, "error: Redis cannot be reached.\n") == tail(["KeptOrder"])[::2]


def test_a_tail_follows_a_queue_that_moves_to_other_shards(
    tail: Tail, shop: ShopOfCommands, worker: type[Worker]
) -> None:
    """The runs of the new shards are printed as those of the old ones."""
    code, out, _ = tail(
        ["KeptOrder"], lambda: shop.run("reshard", "KeptOrder", "--to", "2", "--yes"), "20", "21", "22", "23"
    )

    assert (0, ["20", "21", "22", "23"]) == (code, [line.split()[6] for line in out.splitlines()])
    assert worker.queue_name in shop.app.core.queues


def test_a_queue_without_runs_has_no_tail(shop: ShopOfCommands) -> None:
    """And the sentence says what to write into its class."""
    code, _, error = shop.run("tail", shop.queue)

    assert (2, True) == (code, "No run is kept by SyncOrder: set keep_runs = 10_000 in the class of" in error)
