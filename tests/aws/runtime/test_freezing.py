"""Functions that AWS stops in their tracks: between invocations always, in the middle when it pleases."""

from tests.aws.runtime.conftest import MakeStage
from tests.aws.runtime.function_stage import PLENTY, FunctionStage, reason_of
from tests.kit.servers import MakeServer

IDS = "abcdef"


def test_p4_who_was_frozen_longer_than_its_lease_has_no_say_any_more(make_stage: MakeStage) -> None:
    """P4: its writes are refused, it says that it lost the lease, and its handler was told to stop."""
    stage = make_stage(batch_size=1)
    stage.push(IDS[0], "await stop once")
    stage.push(IDS[1:], number=2)
    frozen, other = stage.environment(lease_ttl=1.0, metrics="queues"), stage.environment(lease_ttl=10.0)
    running = frozen.begin({"shard": 0}, timeout=60.0)
    (begun,) = stage.await_told("begin", id="a")
    frozen.freeze()
    stage.await_free()

    taken_over = other.begin({"shard": 0}, timeout=PLENTY).result()
    assert "empty" == reason_of(taken_over)
    ended = stage.state()
    assert not running.is_over
    frozen.thaw()
    lost = running.result()

    assert "lease lost" == reason_of(lost)
    assert [1] == lost.metric("ended_lease_lost")
    assert [] == lost.metric("done")
    (told,) = stage.told("stopping", id="a")
    assert begun["pid"] == told["pid"] == lost.pid
    assert ended == stage.state()
    # What the late one wrote elsewhere carries an older token than what its successor wrote.
    first, second = (line["token"] for line in stage.told("begin", id="a"))
    assert first < second
    assert {taken_over.pid} == {line["pid"] for line in stage.told("begin") if line["id"] in IDS[1:]}
    stage.check_that_nothing_is_left(done=len(IDS))


def test_p4_an_environment_that_lost_a_lease_is_as_good_as_any_other(stage: FunctionStage) -> None:
    """The next invocation of the same process takes a lease of its own, and drains."""
    stage.push("a", "await stop once")
    frozen, other = stage.environment(lease_ttl=1.0), stage.environment(lease_ttl=10.0)
    running = frozen.begin({"shard": 0}, timeout=60.0)
    stage.await_told("begin", id="a")
    frozen.freeze()
    stage.await_free()
    other.begin({"shard": 0}, timeout=PLENTY).result()
    frozen.thaw()
    lost = running.result()
    stage.push(IDS[1:])
    after = frozen.begin({"shard": 0}, timeout=PLENTY).result()

    assert ("empty", lost.pid, False) == (reason_of(after), after.pid, after.cold)
    assert {after.pid} == {line["pid"] for line in stage.told("end") if line["id"] in IDS[1:]}
    stage.check_that_nothing_is_left(done=len(IDS))


def test_p4_what_was_done_in_time_overslept_counts_where_nobody_came(make_stage: MakeStage) -> None:
    """P4: the lease is over, but nobody was given the shard: nothing is repeated, and nothing is lost."""
    stage = make_stage(batch_size=1)
    stage.push("a", "wait")
    stage.push(IDS[1:], number=2)
    environment = stage.environment(lease_ttl=1.0)
    running = environment.begin({"shard": 0}, timeout=60.0)
    stage.await_told("begin", id="a")
    environment.freeze()
    stage.await_free()
    environment.thaw()
    stage.release("a")
    assert reason_of(running.result()) in {"empty", "lease lost"}

    stage.await_free()
    assert "empty" == reason_of(environment.begin({"shard": 0}, timeout=PLENTY).result())
    assert {job_id: [[1 if job_id == "a" else 2]] for job_id in IDS} == stage.performed()
    stage.check_that_nothing_is_left(done=len(IDS))


def test_no_lease_outlives_its_invocation(stage: FunctionStage) -> None:
    """Between invocations the process stands still, so its lease is given back before."""
    environment = stage.environment(lease_ttl=30.0)
    for number in (1, 2):
        stage.push(IDS, number=number)
        assert "empty" == reason_of(environment.begin({"shard": 0}, timeout=PLENTY).result())
        stage.await_free()

    tokens = [line["token"] for line in stage.told("begin")]
    assert 2 == len(set(tokens))
    assert sorted(tokens) == tokens
    stage.check_that_nothing_is_left(done=2 * len(IDS))


def test_a_thawed_environment_measures_the_clock_again(make_stage: MakeStage, make_server: MakeServer) -> None:
    """The monotonic clock may have stood still while it was frozen: what it knew of the server's time is void."""
    server = make_server()
    stage = make_stage(server)

    def times_asked() -> int:
        found = server.admin.info("commandstats")
        return int(found.get("cmdstat_time", {"calls": 0})["calls"])

    environment = stage.environment()
    stage.push(IDS)
    environment.begin({"shard": 0}, timeout=PLENTY).result()
    before = times_asked()
    stage.set_clock_forward(3_600.0)
    stage.push(IDS, number=2)
    after = environment.begin({"shard": 0}, timeout=PLENTY).result()

    assert not after.cold
    assert times_asked() > before
    assert {job_id: [[1], [2]] for job_id in IDS} == stage.performed()
