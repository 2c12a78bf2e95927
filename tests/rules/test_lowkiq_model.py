"""Lowkiq's guarantees and model (L-1 to L-11).

L-9 (a warning for more shards than threads) is the daemon's, L-11 the benchmark's.
"""

import threading
from collections import defaultdict
from random import Random
from lowkiq_lambda import Batch, Lowkiq, Worker
from lowkiq_lambda.job import shard_for
from lowkiq_lambda.testing import ManualClock
from tests.kit.apps import MakeApp
from tests.kit.deaths import Mortal, outlive
from tests.kit.handlers import Notes
from tests.kit.workers import declare, jobs_of
from tests.kit.looks import left_behind, look
from tests.rules.together import in_threads


def test_l1_jobs_of_one_id_never_run_at_one_time(make_app: MakeApp, queue_name: str) -> None:
    """L-1: several holders drain one queue, and no id is ever in two handlers."""
    running, overlaps, lock = set[str](), list[str](), threading.Lock()

    def enter_and_leave(batch: Batch) -> None:
        with lock:
            overlaps.extend(running & set(batch))
            running.update(batch)
        for job_id in batch:
            workers[0].perform_async([{"id": job_id, "payload": 1}] if batch[job_id] == [0] else [])
        with lock:
            running.difference_update(batch)

    apps = [make_app() for _ in range(3)]
    workers = [declare(app, queue_name, enter_and_leave, shards_count=4, batch_size=3) for app in apps]
    workers[0].perform_async([{"id": n, "payload": 0} for n in range(200)])
    in_threads(*apps)
    in_threads(*apps)

    assert [] == overlaps
    assert {} == left_behind(apps[0], workers[0])


def test_l1_threads_of_one_app_share_its_queues(app: Lowkiq, queue_name: str) -> None:
    """L-1, L-4: several threads that drain one app perform each job once, none beside another of its shard."""
    inside: dict[int, int] = {}
    overlaps: list[int] = []
    performed: list[str] = []

    def perform(batch: Batch) -> None:
        shard = shard_for(next(iter(batch)), 3)
        if inside.setdefault(shard, threading.get_ident()) != threading.get_ident():
            overlaps.append(shard)
        performed.extend(batch)
        inside.pop(shard, None)

    worker = declare(app, queue_name, perform, shards_count=3, batch_size=5)
    worker.perform_async([{"id": n} for n in range(500)])
    in_threads(app, app, app, app)
    app.drain()

    assert [] == overlaps
    assert sorted(str(n) for n in range(500)) == sorted(performed)
    assert {} == left_behind(app, worker)


def test_l2_death_of_a_process_loses_no_job(app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
    """L-2: what a dead process had in its hands, and what it had not, is performed."""
    mortal = Mortal(app)
    notes = Notes(mortal.die)
    worker = declare(app, queue_name, notes, batch_size=2)
    worker.perform_async(jobs_of("abcde"))
    mortal.drain()
    notes.clear()
    notes.then = None

    outlive(app, clock, worker)
    app.drain()

    assert set("abcde") == {job_id for ids in notes.ids for job_id in ids}
    assert {} == left_behind(app, worker)


def test_l3_an_id_always_lands_in_the_same_shard(app: Lowkiq, queue_name: str) -> None:
    """L-3, LN-15: the shard is computed from the id alone, by the same function as Lowkiq's."""
    worker = declare(app, queue_name, Notes(), shards_count=7)
    ids = ["", "1", "order:17", "день", "😀"]

    for _ in range(2):
        assert [shard_for(job_id, 7) for job_id in ids] == [
            pushed.shard for pushed in worker.perform_async(jobs_of(ids))
        ]


def test_l4_a_shard_has_one_holder(make_app: MakeApp, queue_name: str) -> None:
    """L-4: while one drain holds a shard, another finds it held and performs nothing of it."""
    first, second = make_app(), make_app()
    seen: list[dict[str, int]] = []
    worker = declare(first, queue_name, lambda _batch: seen.append(second.drain()))
    others = Notes()
    declare(second, queue_name, others)
    worker.perform_async(jobs_of("ab"))

    first.drain()

    assert ([{}, {}], []) == (seen, others.batches)


def test_l5_payloads_of_an_id_accumulate(app: Lowkiq, queue_name: str) -> None:
    """L-5: a handler gets all that has accumulated for an id at once."""
    notes = Notes()
    worker = declare(app, queue_name, notes)
    for n in range(5):
        worker.perform_async([{"id": "a", "payload": n}])

    app.drain()

    assert [{"a": [0, 1, 2, 3, 4]}] == notes.batches


def test_l6_payloads_serve_as_deltas_and_as_snapshots(app: Lowkiq, queue_name: str) -> None:
    """L-6: all deltas applied in order, or only the newest snapshot, lead to the right state."""
    stock, snapshot = defaultdict[str, int](int), dict[str, int]()

    def apply(batch: Batch) -> None:
        for job_id, payloads in batch.items():
            stock[job_id] += sum(payload["delta"] for payload in payloads)
            snapshot[job_id] = payloads[-1]["stock"]

    worker = declare(app, queue_name, apply, batch_size=10)
    rng, level = Random(6), 0
    for version in range(20):
        delta = rng.randint(-5, 5)
        level += delta
        worker.perform_async([{"id": "apple", "payload": {"delta": delta, "stock": level}, "score": version}])
        if rng.random() < 0.3:
            app.drain()
    app.drain()

    assert {"apple": level} == stock == snapshot


def test_l7_each_worker_has_a_queue_of_its_own(app: Lowkiq, queue_name: str) -> None:
    """L-7: a job goes to the worker that it was pushed to, whatever its id."""
    first, second = Notes(), Notes()
    declare(app, queue_name + "-1", first).perform_async([{"id": "a", "payload": 1}])
    declare(app, queue_name + "-2", second).perform_async([{"id": "a", "payload": 2}])

    app.drain()

    assert ([{"a": [1]}], [{"a": [2]}]) == (first.batches, second.batches)


def test_l8_queues_and_shards_cost_no_threads(app: Lowkiq, queue_name: str) -> None:
    """L-8: draining more queues with more shards starts no further threads."""
    workers = [declare(app, f"{queue_name}-{n}", Notes(), shards_count=20) for n in range(10)]
    workers[0].perform_async(jobs_of("a"))
    app.drain()
    before = threading.active_count()

    for worker in workers:
        worker.perform_async([{"id": n} for n in range(40)])
    app.drain()

    assert before == threading.active_count()


def test_l10_an_older_change_never_overwrites_a_newer(make_app: MakeApp, queue_name: str) -> None:
    """L-10: M1 then M2 of one entity, performed by several holders, never end with M1's state over M2's."""
    state, seen = dict[str, int](), defaultdict[str, list[int]](list)

    def write(batch: Batch) -> None:
        for job_id, payloads in batch.items():
            for version in payloads:
                seen[job_id].append(version)
                state[job_id] = version

    apps = [make_app(), make_app()]
    workers: list[type[Worker]] = [declare(app, queue_name, write, shards_count=2) for app in apps]
    threads = [threading.Thread(target=in_threads, args=apps) for _ in range(2)]
    for version in range(30):
        pushed = [{"id": n, "payload": version, "score": version} for n in range(5)]
        workers[version % 2].perform_async(pushed)
        if version == 3:
            for thread in threads:
                thread.start()
    for thread in threads:
        thread.join()
    in_threads(*apps)

    assert {} == left_behind(apps[0], workers[0])
    assert {str(n): 29 for n in range(5)} == state
    assert all(versions == sorted(versions) for versions in seen.values())


def test_l9_is_no_failure(app: Lowkiq, queue_name: str) -> None:
    """L-9: a worker with more shards than there are threads works, whatever a daemon has to say about it."""
    notes = Notes()
    worker = declare(app, queue_name, notes, shards_count=50)
    worker.perform_async(jobs_of("a"))

    app.drain()

    assert [["a"]] == notes.ids
    assert look(app, worker, "a") is None
