"""What the verification by housekeeping asks of the server (P8)."""

import math
from collections import Counter
from collections.abc import Iterator

import pytest

from lowkiq_lambda import Config, Lowkiq
from lowkiq_lambda.operate.verify.duty import VerifyDuty, verify_runner
from lowkiq_lambda.testing import ManualClock
from tests.kit.apps import closing_app
from tests.kit.handlers import Notes
from tests.kit.servers import Server
from tests.kit.workers import declare, jobs_of

QUEUES, SHARDS, MINUTES, JOBS = 3, 20, 60, 10
NOT_OURS = {"hello", "client|setinfo", "client|setname", "config|resetstat", "info", "ping", "script|load"}


@pytest.fixture
def app(own_server: Server, clock: ManualClock) -> Iterator[Lowkiq]:
    """Three queues of 20 shards, of which one hundredth is verified; all of them are declared."""
    with closing_app(Lowkiq(Config(redis_url=own_server.url, verify=0.01), clock=clock)) as made:
        for number in range(QUEUES):
            worker = declare(made, f"queue{number}", Notes(), shards_count=SHARDS)
            worker.push_many(jobs_of([str(job) for job in range(JOBS * SHARDS)]))
        made.drain()
        VerifyDuty(made.core).run(lambda: math.inf)
        clock.advance(60.0)
        yield made


def commands_of(server: Server) -> Counter[str]:
    """What the server has been asked, those inside scripts too."""
    stats = server.admin.info("commandstats")
    asked = Counter({name.removeprefix("cmdstat_"): each["calls"] for name, each in stats.items()})
    return Counter({name: count for name, count in asked.items() if name not in NOT_OURS})


def test_p8_a_minute_in_which_nothing_is_recorded_costs_two_reads_of_each_queue(
    app: Lowkiq, own_server: Server
) -> None:
    """P8: its record, and its declaration, as it may be on its way to other shards. Nothing is written."""
    before = own_server.admin.info("persistence")["rdb_changes_since_last_save"]
    own_server.admin.config_resetstat()
    VerifyDuty(app.core).run(lambda: math.inf)
    commands = commands_of(own_server)

    assert 2 * QUEUES >= commands["get"]
    assert commands.total() <= 3 * QUEUES
    assert before == own_server.admin.info("persistence")["rdb_changes_since_last_save"]


def test_p8_an_hour_costs_some_commands_a_minute(app: Lowkiq, own_server: Server, clock: ManualClock) -> None:
    """P8: 36 shard-minutes of 3,600 are recorded and judged, and few commands are about the other shards."""
    own_server.admin.config_resetstat()
    judged = drawn = 0
    for _ in range(MINUTES):
        verdict = VerifyDuty(app.core).run(lambda: math.inf)
        judged, drawn = judged + verdict["judged"], drawn + verdict["drawn"]
        clock.advance(60.0)
    commands = commands_of(own_server)

    assert 20 <= judged <= 36
    assert judged <= drawn <= judged + QUEUES
    # A recording is a call that begins it, one that ends it, and one that reads what ids have, if there are any.
    assert commands["evalsha"] + commands["eval"] <= 3 * drawn
    assert commands["xrange"] <= 2 * drawn
    assert commands.total() <= 3 * QUEUES * MINUTES + 40 * drawn


def test_p8_the_duty_itself_is_a_claim_and_its_end(app: Lowkiq, own_server: Server, clock: ManualClock) -> None:
    """P8: as of any duty, once a minute for all processes; the others ask once when it is due next."""
    runner = verify_runner(app.core, clock)
    runner.run_due(lambda: math.inf)
    clock.advance(60.0)
    own_server.admin.config_resetstat()
    runner.run_due(lambda: math.inf)
    runner.run_due(lambda: math.inf)
    commands = commands_of(own_server)

    assert 3 >= commands["evalsha"]
