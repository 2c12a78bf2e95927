"""`lowkiq stats`: queues in trouble come first, in colour where a terminal is, and alone if that is asked for."""

import json
import sys

import pytest

from lowkiq_lambda import Config, Lowkiq, Worker
from lowkiq_lambda.operate.presentation.trouble import trouble_of
from lowkiq_lambda.testing import ManualClock
from tests.cli.conftest import ShopOfCommands
from tests.kit.apps import closing_app
from tests.kit.handlers import Notes
from tests.kit.handlers import failing as failing_ids
from tests.kit.workers import declare, jobs_of


@pytest.fixture
def blocked(shop: ShopOfCommands) -> type[Worker]:
    """A queue with a blocked id, which is declared after one that is well."""
    worker = declare(shop.app, f"{shop.queue}-blocked", Notes(failing_ids("a")), max_retry_count=0, dead_head="block")
    worker.push_many(jobs_of("ab"))
    shop.app.drain()
    return worker


def names(out: str) -> list[str]:
    """The queues of a table, without colours."""
    return [line.removeprefix("\x1b[31m").split()[0] for line in out.splitlines()[1:]]


def test_trouble_comes_first_and_may_come_alone(shop: ShopOfCommands, blocked: type[Worker]) -> None:
    """For people and for programs; without trouble a sentence says so."""
    everything, alone = shop.run("stats"), shop.run("stats", "--only-trouble")
    queues = json.loads(shop.run("stats", "--only-trouble", "--json")[1])["queues"]
    well = shop.run("stats", "SyncOrder", "--only-trouble")

    assert [blocked.queue_name, shop.queue] == names(everything[1])
    assert [blocked.queue_name] == names(alone[1]) == [queue["name"] for queue in queues]
    assert alone[1].splitlines()[1].endswith("  1 blocked")
    assert (0, "no queue is in trouble\n") == well[:2]


def test_shares_and_what_stands_still_are_trouble_and_counts_are_not(shop: ShopOfCommands) -> None:
    """One failure among forty successes is none; nor is what is due later, or a pause of a queue without jobs."""
    clock = ManualClock(1_700_000_000.0)
    with closing_app(Lowkiq(Config(redis_url=shop.app.config.redis_url), clock=clock)) as app:
        failing, few, well, late, still = (
            declare(app, f"{shop.queue}-{name}", Notes(failing_ids(*ids)), max_retry_count=0)
            for name, ids in {
                "failing": "abcdefghijklmnopqrst",
                "few": "a",
                "well": "b",
                "late": "",
                "still": "",
            }.items()
        )
        failing.push_many(jobs_of("abcdefghijklmnopqrst"))
        few.push_many(jobs_of("a"))
        well.push_many(jobs_of(["b", *map(str, range(40))]))
        app.drain()
        well.push_many([{"id": "later", "delay": 3_600}])
        still.push_many(jobs_of("a"))
        clock.advance(240.0)
        late.push_many(jobs_of("a"))
        clock.advance(90.0)
        with app.operate.overview() as overview:
            rated = {queue.name.rpartition("-")[2]: trouble_of(queue) for queue in overview.queues}

    assert {
        "failing": ("act", "100% fail"),
        "few": ("look", "100% fail"),
        "well": ("quiet", ""),
        "late": ("look", "late by 1m 30s"),
        "still": ("act", "stands still for 5m 30s"),
    } == {name: (one.severity, one.words) for name, one in rated.items()}


@pytest.mark.parametrize(
    ("environ", "is_red"),
    [({"TERM": "xterm"}, True), ({"NO_COLOR": "1"}, False), ({"TERM": "dumb"}, False), ({"IS_A_PIPE": "1"}, False)],
)
def test_a_terminal_has_colours_unless_it_wants_none(
    shop: ShopOfCommands,
    blocked: type[Worker],
    monkeypatch: pytest.MonkeyPatch,
    environ: dict[str, str],
    *,
    is_red: bool,
) -> None:
    """Red is what somebody has to act on; what is well has no colour."""
    for name, value in {"NO_COLOR": "", "TERM": "xterm", **environ}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(sys.stdout, "isatty", lambda: "IS_A_PIPE" not in environ)

    _, bad, well = shop.run("stats")[1].splitlines()

    assert is_red == bad.startswith(f"\x1b[31m{blocked.queue_name} ")
    assert is_red == bad.endswith("\x1b[0m")
    assert "\x1b" not in well
