"""Several daemons on the same shards."""

import json
import signal
from collections import Counter
from itertools import count
from pathlib import Path

import pytest

from tests.kit.servers import Server
from tests.kit.stage import Stage
from tests.kit.waiting import eventually
from tests.local.conftest import APP

JOBS = 1_000


def pids_of(path: Path) -> set[int]:
    """The processes that have performed a job; the last line may be half written."""
    lines = path.read_text().rpartition("\n")[0].splitlines()
    return {one["pid"] for one in map(json.loads, lines) if one["what"] == "end"}


@pytest.mark.parametrize(
    "settings",
    [
        pytest.param([{}, {}], id="the same shards"),
        pytest.param([{"number_of_nodes": 2, "node_number": node} for node in range(2)], id="shards divided by node"),
    ],
)
def test_p1_two_daemons_perform_all_jobs_and_none_twice_at_once(
    server: Server, queue_name: str, tmp_path: Path, settings: list[dict[str, int]]
) -> None:
    """P1, L-59: whoever takes which shard, each id is performed once, by one daemon at a time."""
    stage = Stage(server, queue_name, tmp_path, APP, shards_count=7)
    try:
        daemons = [stage.daemon(**one) for one in settings]
        # The faster of them could perform all jobs before the other one has begun.
        eventually(lambda: all("INFO    daemon " in daemon.log for daemon in daemons), timeout=60)
        path, numbers = tmp_path / "told", count()

        def push_more() -> None:
            stage.worker.push_many([{"id": str(next(numbers)), "payload": {"do": "note"}} for _ in range(100)])

        def both_have_work() -> bool:
            """On a busy machine one of them may be held up while the other one performs all that there is."""
            push_more()
            return path.exists() and {daemon.pid for daemon in daemons} == pids_of(path)

        for _ in range(JOBS // 100):
            push_more()
        eventually(both_have_work, timeout=60, what="work for both")
        pushed = next(numbers)
        eventually(lambda: path.read_text().count('"end"') >= pushed, timeout=60)
        for daemon in daemons:
            daemon.send(signal.SIGTERM)

        assert [0, 0] == [daemon.exit_code() for daemon in daemons]
        told = [json.loads(line) for line in path.read_text().splitlines()]
        assert {str(number): 1 for number in range(pushed)} == Counter(
            one["id"] for one in told if one["what"] == "end"
        )
        assert [] == [one for one in told if one["what"] == "overlap"]
    finally:
        stage.close()
