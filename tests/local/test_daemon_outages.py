"""A daemon while Redis is away, restarting, or refusing."""

import logging
import signal
import threading
from contextlib import closing, suppress
from pathlib import Path

import pytest

from lowkiq_lambda import BackendDenied, Batch, ConfigError, Lowkiq, QueueMismatch, Worker
from lowkiq_lambda.local.daemon import Daemon
from lowkiq_lambda.local.splitters import DefaultSplitter
from lowkiq_lambda.store.shard.keys import ShardRef
from tests.kit.apps import MakeApp
from tests.kit.servers import Cluster, FaultProxy, MakeServer
from tests.kit.stage import Stage
from tests.kit.waiting import eventually
from tests.local.conftest import APP
from tests.local.counting import Counting


def messages(caplog: pytest.LogCaptureFixture, start: str) -> list[str]:
    """The logged messages that start so."""
    return [record.getMessage() for record in caplog.records if record.getMessage().startswith(start)]


def test_a_restart_of_redis_is_survived(make_server: MakeServer, queue_name: str, tmp_path: Path) -> None:
    """Redis is killed and started again while jobs run: all are performed, and none twice at once."""
    server = make_server(appendonly=True)
    with closing(Stage(server, queue_name, tmp_path, APP, shards_count=4)) as stage:
        daemon = stage.daemon(poll_interval=0.2, redis_timeout=1)
        stage.push(["held"], "wait")
        stage.await_told("begin", id="held")
        stage.worker.push_many(
            [{"id": f"job-{number}", "payload": {"do": "note"}, "delay": number / 500} for number in range(200)]
        )
        server.kill()
        stage.release("held")
        stage.await_told("end", id="held")
        server.start()
        eventually(lambda: len({one["id"] for one in stage.told("end")}) == 201, timeout=60)
        daemon.send(signal.SIGTERM)

        assert 0 == daemon.exit_code()
        assert [] == stage.told("overlap")


def test_an_outage_is_reported_once_and_when_it_is_over(
    make_app: MakeApp, queue_name: str, fault_proxy: FaultProxy, caplog: pytest.LogCaptureFixture
) -> None:
    """L-67: however many threads and polls notice, there is one line at the start, one at the end, and last_words."""
    words: list[BaseException] = []
    app = make_app(
        redis_url=fault_proxy.url, poll_interval=0.1, redis_timeout=0.5, lease_ttl=1.0, last_words=words.append
    )
    counting, pushing = Counting(app, queue_name), Counting(make_app(), queue_name)
    with caplog.at_level(logging.INFO), Daemon(app):
        counting.worker.push_many([{"id": "before"}])
        eventually(lambda: counting.done)
        fault_proxy.refuse()
        fault_proxy.cut()
        eventually(lambda: messages(caplog, "Redis is unreachable"))
        pushing.worker.push_many([{"id": "meanwhile"}])
        fault_proxy.accept()
        eventually(lambda: messages(caplog, "Redis is back"))
        eventually(lambda: "meanwhile" in counting.done)

    assert 1 == len(messages(caplog, "Redis is unreachable"))
    assert 1 == len(messages(caplog, "Redis is back"))
    assert 1 == len(words)
    assert [] == messages(caplog, "a thread died")


def test_what_runs_when_redis_goes_runs_again_when_it_is_back(
    make_app: MakeApp, queue_name: str, fault_proxy: FaultProxy, caplog: pytest.LogCaptureFixture
) -> None:
    """E-44: a handler whose end cannot be told in time is run again; its thread lives on."""
    app = make_app(redis_url=fault_proxy.url, poll_interval=0.1, redis_timeout=0.5, lease_ttl=0.6)
    runs: list[bool] = []
    waits: list[bool] = []
    going = threading.Event()

    @app.worker(queue_name=queue_name, shards_count=1)
    def wait(batch: Batch) -> None:
        runs.append(batch.job("a").repeated)
        waits.append(going.wait(30))

    with Daemon(app):
        wait.push_many([{"id": "a"}])
        eventually(lambda: runs)
        fault_proxy.refuse()
        fault_proxy.cut()
        going.set()
        eventually(lambda: not app.core.drains.drainer._running, what="the visit to give up")
        fault_proxy.accept()
        eventually(lambda: len(runs) == 2)

    assert ([False, True], [True, True]) == (runs, waits)
    assert [] == messages(caplog, "a thread died")


def test_redis_may_come_after_the_daemon(
    make_app: MakeApp, make_server: MakeServer, queue_name: str, caplog: pytest.LogCaptureFixture
) -> None:
    """A server that is out of reach at the start is waited for, and looked at when it is there (S-9)."""
    server = make_server(maxmemory_policy="allkeys-lru")
    with FaultProxy(server) as proxy:
        app = make_app(redis_url=proxy.url, poll_interval=0.1)
        counting, pushing = Counting(app, queue_name), Counting(make_app(redis_url=server.url), queue_name)
        proxy.refuse()
        with Daemon(app):
            pushing.worker.push_many([{"id": "a"}])
            proxy.accept()
            eventually(lambda: counting.done)
            eventually(lambda: messages(caplog, "The server's maxmemory-policy is allkeys-lru"))

    (line,) = messages(caplog, "Redis is unreachable")
    assert line.endswith(
        "; the daemon retries until it answers. If it never answered, check the URL (LOWKIQ_REDIS_URL)."
    )


def test_a_cluster_that_is_away_at_the_start_is_waited_for(cluster: Cluster, queue_name: str, tmp_path: Path) -> None:
    """E-37: a daemon that starts while no node is within reach says so, and begins when they are; TERM ends it."""
    for node in cluster.nodes:
        node.kill()
    with closing(Stage(cluster, queue_name, tmp_path, APP, shards_count=3)) as stage:
        waiting, stopped = stage.daemon(redis_timeout=1), stage.daemon(redis_timeout=1)
        eventually(lambda: all("Redis is unreachable" in daemon.log for daemon in (waiting, stopped)), timeout=30)
        stopped.send(signal.SIGTERM)
        assert 0 == stopped.exit_code()

        cluster.wait_until_ok()
        stage.push(["job"])
        stage.await_told("end", id="job")
        waiting.send(signal.SIGTERM)
        assert 0 == waiting.exit_code()


def test_e46_a_refused_password_is_an_error_at_the_start(
    make_app: MakeApp, make_server: MakeServer, queue_name: str
) -> None:
    """E-46: what no waiting heals is raised by `start`, and no thread is left behind."""
    server = make_server()
    app = make_app(redis_url=server.add_user("guest", "~*", "+@all").replace("secret", "wrong"))
    Counting(app, queue_name)

    with pytest.raises(BackendDenied), Daemon(app):
        pass


def test_a_queue_that_was_made_otherwise_is_an_error_at_the_start(make_app: MakeApp, queue_name: str) -> None:
    """A deploy with another shards_count fails before anything runs, and says what to do."""
    Counting(make_app(), queue_name, shards_count=3).worker.push_many([{"id": "a"}])
    app = make_app()
    Counting(app, queue_name, shards_count=4)

    with pytest.raises(QueueMismatch, match="shards_count=4"), Daemon(app):
        pass


def test_p6_a_queue_that_may_not_be_drained_does_not_keep_others_from_it(
    make_app: MakeApp, queue_name: str, fault_proxy: FaultProxy, caplog: pytest.LogCaptureFixture
) -> None:
    """P6: where the mismatch shows only after the start, that queue is left out with an error in the log."""
    producer = make_app()
    Counting(producer, f"{queue_name}-other", shards_count=3).worker.push_many([{"id": "a"}])
    pushing = Counting(producer, queue_name)
    app = make_app(redis_url=fault_proxy.url, poll_interval=0.1)
    other, counting = Counting(app, f"{queue_name}-other", shards_count=4), Counting(app, queue_name)
    fault_proxy.refuse()
    with Daemon(app):
        fault_proxy.accept()
        pushing.worker.push_many([{"id": "a"}])
        eventually(lambda: counting.done)
        eventually(lambda: messages(caplog, f"queue '{queue_name}-other' is left out"))

    assert [] == other.done


def test_a_queue_that_is_declared_anew_while_the_daemon_runs_is_left_out_and_no_other(
    make_app: MakeApp, queue_name: str, caplog: pytest.LogCaptureFixture
) -> None:
    """P6: its jobs come to shards that this daemon knows, and are none of its business; no thread dies of that."""
    app, anew = make_app(poll_interval=0.1, threads_per_node=1), make_app()
    other, counting = Counting(app, f"{queue_name}-other"), Counting(app, queue_name)
    with Daemon(app):
        other.worker.push_many([{"id": "before"}])
        eventually(lambda: app.operate.stats()["total"]["length"] == 0 and other.done)
        body = {"queue_name": f"{queue_name}-other", "shards_count": 2, "merge": "never", "perform": _perform_nothing}
        worker: type[Worker] = anew.worker(type("Anew", (Worker,), body))
        eventually(lambda: _redeclared(anew, worker))
        worker.push_many([{"id": number} for number in range(20)])
        eventually(lambda: messages(caplog, f"queue '{queue_name}-other' is left out"))
        counting.worker.push_many([{"id": "a"}])
        eventually(lambda: counting.done)

    assert ["before"] == other.done
    assert [] == messages(caplog, "a thread died")
    assert {"done": 20} == anew.drain()


def _redeclared(app: Lowkiq, worker: type[Worker]) -> bool:
    # What the daemon has just performed is in flight until it is settled.
    with suppress(QueueMismatch):
        app.operate(worker).redeclare()
        return True
    return False


def _perform_nothing(_self: Worker, _batch: Batch) -> None:
    pass


def test_l9_more_shards_than_threads_are_a_warning(
    make_app: MakeApp, queue_name: str, caplog: pytest.LogCaptureFixture
) -> None:
    """L-9: counted are the threads of all nodes, and each worker by itself."""
    app = make_app(threads_per_node=2, number_of_nodes=2, node_number=1)
    Counting(app, f"{queue_name}-many", shards_count=5)
    Counting(app, f"{queue_name}-few", shards_count=4)
    with Daemon(app):
        pass

    (warning,) = messages(caplog, queue_name)
    assert warning.startswith(f"{queue_name}-many has more shards than there are threads")


class Forgetful(DefaultSplitter):
    """A splitter that returns too few lists."""

    def split(self, shards: list[object], threads: int) -> list[list[object]]:  # type: ignore[override]  # simpler than generic
        """All but one."""
        return super().split(shards, threads)[1:]


def test_l60_a_splitter_that_cannot_be_followed_is_refused(make_app: MakeApp, queue_name: str) -> None:
    """L-60: a splitter of one's own must deal to each thread; the error says so before anything runs."""
    app = make_app(build_splitter=Forgetful)
    Counting(app, queue_name)

    with pytest.raises(ConfigError, match="one list for each thread"), Daemon(app):
        pass


class OnlySecond:
    """A splitter that gives one thread everything, as where the others would only be in its way."""

    def split(self, shards: list[object], threads: int) -> list[list[object]]:
        """All to the second."""
        return [[], shards, *([] for _ in range(threads - 2))]


def test_l60_a_splitter_of_ones_own_is_followed(make_app: MakeApp, queue_name: str) -> None:
    """L-60: shards go to the threads that the splitter says; a thread without any does no harm."""
    app = make_app(build_splitter=OnlySecond, threads_per_node=3)
    threads: list[str] = []

    @app.worker(queue_name=queue_name, shards_count=6)
    def note_thread(batch: Batch) -> None:
        threads.extend(threading.current_thread().name for _ in batch)

    with Daemon(app):
        note_thread.push_many([{"id": number} for number in range(30)])
        eventually(lambda: len(threads) == 30)

    assert {"lowkiq-drain-1"} == set(threads)


class AtMostTwo:
    """A splitter that gives the shards of reports to two threads, and the others to all other threads."""

    def split(self, shards: list[ShardRef], threads: int) -> list[list[ShardRef]]:
        """By the name of the queue."""
        reports = [shard for shard in shards if shard.queue_name.endswith("-report")]
        others = [shard for shard in shards if shard not in reports]
        return [*DefaultSplitter().split(reports, 2), *DefaultSplitter().split(others, threads - 2)]


def test_x30_a_splitter_limits_how_many_handlers_of_a_queue_run_in_one_process(
    make_app: MakeApp, queue_name: str
) -> None:
    """X-30: a thread runs one visit at a time, and keeps to its shards; other queues have the other threads."""
    app = make_app(build_splitter=AtMostTwo, threads_per_node=4)
    go_on, others = threading.Event(), list[str]()
    running, most = set[str](), list[int]()

    @app.worker(queue_name=f"{queue_name}-report", shards_count=6)
    def report(batch: Batch) -> None:
        running.update(batch)
        most.append(len(running))
        go_on.wait(30)
        running.difference_update(batch)

    @app.worker(queue_name=f"{queue_name}-other", shards_count=4)
    def other(batch: Batch) -> None:
        others.extend(batch)

    report.push_many([{"id": number} for number in range(24)])
    with Daemon(app):
        eventually(lambda: len(running) == 2)
        other.push_many([{"id": number} for number in range(50)])
        eventually(lambda: len(others) == 50)
        assert 2 == len(running)
        go_on.set()
        eventually(lambda: len(most) == 24 and not running)

    assert 2 == max(most)


def test_l59_a_node_without_shards_has_nothing_to_do(
    make_app: MakeApp, queue_name: str, caplog: pytest.LogCaptureFixture
) -> None:
    """L-59: where there are more nodes than shards, a node that gets none says so and idles."""
    app = make_app(number_of_nodes=3, node_number=2)
    Counting(app, queue_name, shards_count=2)
    with Daemon(app):
        pass

    assert 1 == len(messages(caplog, "no shard is left for this node"))
