"""Queues that drain functions work on."""

import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from tests.aws.runtime.function_stage import FunctionStage
from tests.kit.servers import Server

collect_ignore_glob = [] if sys.platform == "linux" else ["test_*.py"]
"""AWS's runtime client exists for Linux alone, as Lambda does."""


MakeStage: TypeAlias = Callable[..., FunctionStage]
"""Makes a stage with the options of its class, on the shared server if no other is given; closed after the test."""


@pytest.fixture
def make_stage(server: Server, queue_name: str, tmp_path: Path) -> Iterator[MakeStage]:
    """For tests with wishes."""
    with ExitStack() as stack:

        def make(own: Server | None = None, **options: Any) -> FunctionStage:
            return stack.enter_context(closing(FunctionStage(own or server, queue_name, tmp_path, **options)))

        yield make


@pytest.fixture
def stage(make_stage: MakeStage) -> FunctionStage:
    """A queue of one shard."""
    return make_stage()
