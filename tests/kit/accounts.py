"""Accounts of the dashboards in tests."""

from collections.abc import Callable, Iterator
from typing import Any, TypeAlias
import pytest
from lowkiq_lambda import Config, Lowkiq
from lowkiq_lambda.dashboard import Account, Auth, dashboard
from lowkiq_lambda.testing import ManualClock
from tests.kit.apps import close_app
from tests.kit.web import Browser
from tests.kit.handlers import FailingHandler
from tests.store.support import declare


OPERATOR, READER = "open sesame, please", "only to look at it"
AUTH = Auth([Account("olga", OPERATOR, "operator"), Account("rita", READER, "reader")])
