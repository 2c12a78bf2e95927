"""A run that ends before its end."""

import signal
from pathlib import Path
from typing import Any

import pytest

from tests.aws.schedules.command import DONE, WriteApp, start
from tests.aws.schedules.front import Front
from tests.aws.schedules.values import deployed, names
from tests.kit.examples import mostly_nightly
from tests.kit.servers import Server


@pytest.mark.parametrize("writes", mostly_nightly([0, 1, 3, 6], 3))
def test_a_run_that_is_killed_midway_is_finished_by_the_next(  # noqa: PLR0913, PLR0917 - two servers and an app
    front: Front,
    own_server: Server,
    write_app: WriteApp,
    tmp_path: Path,
    scheduler: Any,
    group: str,
    prefix: str,
    writes: int,
) -> None:
    """SIGKILL between any two changes leaves a part of the work, and running the same command again does the rest."""
    words = ["--prefix", prefix, "--yes"]
    first, then = write_app({"Orders": 3}), write_app({"Clicks": 1, "Fees": 1, "Ids": 5})
    with start([*words, first], front, own_server, tmp_path) as begin:
        assert begin.communicate()[0]
    assert DONE == begin.returncode

    # Five changes: two to create, and three to update.
    more = [*words, "--expression", "rate(3 minutes)", then]
    front.hold_after(writes)
    with start(more, front, own_server, tmp_path) as run:
        if writes < 5:
            assert front.held.wait(30)
            run.send_signal(signal.SIGKILL)
        run.communicate()
    assert (-signal.SIGKILL if writes < 5 else DONE) == run.returncode
    front.let_go()
    changed = sum(one["ScheduleExpression"] == "rate(3 minutes)" for one in deployed(scheduler, group).values())
    assert min(writes, 5) == changed

    with start([*more], front, own_server, tmp_path) as again:
        out, _ = again.communicate()

    assert DONE == again.returncode
    assert ("Nothing to do" in out) == (writes >= 5)
    assert names(prefix, range(5)) == sorted(deployed(scheduler, group))
    assert {"rate(3 minutes)"} == {one["ScheduleExpression"] for one in deployed(scheduler, group).values()}
