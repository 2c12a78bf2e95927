"""The log of a function beside the log of a daemon."""

import json
import logging
import sys

import pytest

from lowkiq_lambda.aws.logs import function_logger
from lowkiq_lambda.local.logs import JsonLines


@pytest.mark.usefixtures("install")
def test_functions_and_daemons_log_in_the_same_fields() -> None:
    """A fleet of both has one schema: what both say of a record, they say under the same names."""
    made = logging.makeLogRecord({"msg": "hello", "levelname": "ERROR", "name": "shop", "created": 1_800_000_000.5})
    vars(made)["shard"] = 3
    try:
        int("broken")
    except ValueError:
        made.exc_info = sys.exc_info()

    of_function = json.loads(function_logger().registered_handler.format(made))
    of_daemon = json.loads(JsonLines().format(made))

    assert set() == set(of_function) - set(of_daemon)
    assert {"thread"} == set(of_daemon) - set(of_function)
    same = set(of_function) & set(of_daemon)
    assert {name: of_function[name] for name in same} == {name: of_daemon[name] for name in same}
