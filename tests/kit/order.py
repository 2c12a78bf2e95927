"""In which order the payloads of an id may come."""

import itertools
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
import msgspec
from lowkiq_lambda import Lowkiq
from lowkiq_lambda.clock import SystemClock
from lowkiq_lambda.engine.budget import Budget
from lowkiq_lambda.engine.visit import DrainResult
from lowkiq_lambda.store.shard.keys import ShardRef
from tests.kit.apps import close_app
from tests.chaos.child import Orders
from tests.chaos.process import Child
from tests.chaos.scenario import Journal, Scenario
from tests.kit.stored import State, stored
from tests.kit.servers import Server
from tests.kit.waiting import eventually


def is_in_order(executions: Sequence[Sequence[int]]) -> bool:
    """Whether payloads 1, 2, 3, ... of one id came in order: what was delivered may be again, nothing is skipped."""
    highest = 0
    for payloads in executions:
        first, last = payloads[0], payloads[-1]
        if list(payloads) != list(range(first, last + 1)) or first > highest + 1:
            return False
        highest = max(highest, last)
    return True
