"""Requests, edits and undos of two operators in every order of steps within bounds; the scripts go the same way."""

import pytest

from lowkiq_lambda.testing import ManualClock
from tests.kit.apps import MakeApp
from tests.kit.servers import Server
from tests.models.conforming_requests import play_requests


def test_x(make_app: MakeApp, clock: ManualClock, server: Server, queue_name: str) -> None:
    import os
    a,b=map(int,os.environ["SEEDS"].split("-"))
    labels = play_requests(make_app, clock, server.admin, queue_name, range(a,b))
    for l,c in sorted(labels.items()): print(c,l)
