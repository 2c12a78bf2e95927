"""Eight processes with wrong clocks ask one limiter in a cluster: the servers' own times say how many were granted."""

import re
import subprocess
import sys
from collections import defaultdict
from contextlib import ExitStack
from typing import Final

import pytest

from tests.kit.servers import Cluster
from tests.kit.servers.monitor import Asked, Monitor

PROCESSES: Final = 8
KEYS: Final = 4
PER: Final = 1.0
_NONCE: Final = 3 + 4 + 11
"""EVALSHA, the hash and the number of keys; the keys; and the arguments before it."""
_AT: Final = re.compile(rb"\+([\d.]+) ")


def granted_times(heard: list[Asked], nonces: set[str]) -> dict[bytes, list[float]]:
    """By the server's clock, when each granted call ran; by key. Of a call that was repeated the last counts."""
    at: dict[str, tuple[bytes, float]] = {}
    for asked in heard:
        if asked.name != "evalsha" or (nonce := asked.words[_NONCE].decode()) not in nonces:
            continue
        found = _AT.match(asked.line)
        assert found is not None
        at[nonce] = asked.words[3], float(found[1])
    times: dict[bytes, list[float]] = defaultdict(list)
    for key, moment in at.values():
        times[key].append(moment)
    return times


def fullest(times: list[float], per: float) -> int:
    """How many lie in that window of so many seconds in which most do."""
    times, first, most = sorted(times), 0, 0
    for last, at in enumerate(times):
        while times[first] <= at - per:
            first += 1
        most = max(most, last - first + 1)
    return most


def run(cluster: Cluster, name: str, seconds: float, most: int) -> dict[bytes, list[float]]:
    """The granted times, by key."""
    arguments = [sys.executable, "-m", "tests.limiters.skewed_child", cluster.url, name]
    of_all = [str(seconds), str(most), str(PER), str(KEYS)]
    with ExitStack() as stack:
        monitors = [stack.enter_context(Monitor(node)) for node in cluster.nodes]
        children = [
            stack.enter_context(
                subprocess.Popen(
                    [*arguments, str(number), *of_all], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
                )
            )
            for number in range(PROCESSES)
        ]
        for child in children:
            assert child.stdin is not None
            child.stdin.write("\n")
            child.stdin.flush()
        outputs = [child.communicate(timeout=seconds + 60.0)[0] for child in children]
        assert [0] * PROCESSES == [child.returncode for child in children]
        nonces = {nonce for output in outputs for nonce in output.split()}
        times: dict[bytes, list[float]] = {}
        for monitor in monitors:
            times |= granted_times(monitor.heard(), nonces)
    assert len(nonces) == sum(map(len, times.values()))
    return times


@pytest.mark.parametrize(
    ("seconds", "most"),
    [
        # So few that eight processes reach it on a machine that has other things to do.
        (3.0, 20),
        pytest.param(65.0, 100, marks=pytest.mark.nightly("20,000 acquisitions take a while"), id="long"),
    ],
)
def test_no_window_is_exceeded_whatever_the_clocks_of_processes_say(
    cluster: Cluster, queue_name: str, seconds: float, most: int
) -> None:
    """Neither a skewed clock nor half a round trip lets one more through, over eight processes and all nodes."""
    times = run(cluster, queue_name, seconds, most)

    assert KEYS == len(times)
    assert {True} == {fullest(of_key, PER) <= most for of_key in times.values()}
    # The processes were fast enough to reach the limit: else it would say nothing.
    assert {True} == {len(of_key) >= most * 1.5 for of_key in times.values()}
