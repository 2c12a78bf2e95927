"""What really stands in the log of a function, below the runtime client as Lambda sets it up."""

import json
from typing import Any, Final
from urllib.parse import urlencode

import pytest

from tests.aws.runtime.function_stage import DASHBOARD, DRAIN, PLENTY, TICK, FunctionStage, web_event
from tests.kit.examples import mostly_nightly
from tests.kit.servers.lambda_outcome import Outcome

TOKEN: Final = "t" * 20
LAMBDA_LOGS: Final = {
    "text": {},
    "JSON": {"AWS_LAMBDA_LOG_FORMAT": "JSON", "AWS_LAMBDA_LOG_LEVEL": "INFO"},
}
"""What Lambda sets for a function, by its LogFormat."""


def lines_of(outcome: Outcome, message: str | None = None) -> list[dict[str, Any]]:
    """The lines of an invocation, all of them JSON, without those of metrics; those with a message."""
    lines = [json.loads(line) for line in outcome.log.splitlines()]
    return [line for line in lines if "_aws" not in line and message in (None, line["message"])]


@pytest.mark.parametrize("log_format", mostly_nightly(LAMBDA_LOGS, "JSON"))
def test_what_people_change_stands_in_the_dashboards_log(stage: FunctionStage, log_format: str) -> None:
    """The activity log's line, with the invocation's id, as docs/dashboard.md promises; once."""
    environment = stage.environment(
        DASHBOARD,
        LAMBDA_LOGS[log_format],
        dashboard_tokens=f"deploy:operator:{TOKEN}",
        dashboard_password="a long password",  # noqa: S106 - of nobody
    )
    queue = stage.worker.queue_name
    event = web_event("POST", "/api/v1/queue/pause", {"queue": queue}, authorization=f"Bearer {TOKEN}")

    paused = environment.begin(event, PLENTY, request_id="4711").result()

    assert 200 == paused.value["statusCode"], paused.value
    (line,) = [line for line in lines_of(paused) if line.get("name") == "lowkiq_lambda.activity"]
    assert ("INFO", "pause", queue, 1) == tuple(line[name] for name in ("level", "action", "queue", "changed"))
    assert "deploy" in line["who"]
    assert ("4711", "drain") == (line["function_request_id"], line["function_name"])
    assert TOKEN not in paused.log


@pytest.mark.parametrize("log_format", mostly_nightly(LAMBDA_LOGS, "JSON"))
def test_each_sign_in_stands_in_the_dashboards_log(stage: FunctionStage, log_format: str) -> None:
    """A wrong password and the right one leave a line each, with the address, and never what was typed."""
    password = "the right password"  # noqa: S105 - of a page that only this test sees
    environment = stage.environment(DASHBOARD, LAMBDA_LOGS[log_format], dashboard_password=password)
    form = {"content-type": "application/x-www-form-urlencoded", "origin": "https://example.org"}
    outcomes = []
    for typed in ("guessed", password):
        event = {**web_event("POST", "/sign-in", **form), "body": urlencode({"password": typed})}
        outcomes.append(environment.begin(event, PLENTY).result())

    assert [401, 303] == [outcome.value["statusCode"] for outcome in outcomes]
    lines = [line for outcome in outcomes for line in lines_of(outcome) if line.get("name") == "lowkiq_lambda.activity"]
    assert [("WARNING", "wrong password"), ("INFO", "signed in")] == [
        (line["level"], line["message"].rpartition(": ")[2]) for line in lines
    ]
    assert ["192.0.2.1"] * 2 == [line["address"] for line in lines]
    assert not [outcome for outcome in outcomes if "guessed" in outcome.log or password in outcome.log]


@pytest.mark.parametrize(
    ("event", "message"),
    [({}, "drained"), pytest.param(TICK, "ticked", marks=pytest.mark.nightly("a drain does so in each check"))],
)
def test_the_level_is_ours_and_not_the_one_that_lambda_lets_pass(
    stage: FunctionStage, event: dict[str, Any], message: str
) -> None:
    """POWERTOOLS_LOG_LEVEL holds where Lambda's own level is lower, so that metrics, which have none, still pass."""
    loud = stage.environment(DRAIN, LAMBDA_LOGS["JSON"])
    quiet = stage.environment(DRAIN, {**LAMBDA_LOGS["JSON"], "POWERTOOLS_LOG_LEVEL": "warning"}, metrics="queues")

    said, silent = (one.begin(event, PLENTY, request_id="4711").result() for one in (loud, quiet))

    (line,) = lines_of(said, message)
    assert "4711" == line["function_request_id"]
    assert [] == lines_of(silent)
    assert [] != silent.metrics


def test_a_failure_is_one_line_with_one_traceback(stage: FunctionStage) -> None:
    """Lambda's own handler says nothing of it again: its error is a field, and begins the traceback."""
    stage.push("a", "no such act")
    environment = stage.environment(variables=LAMBDA_LOGS["JSON"])

    failed = environment.begin({"shard": 0}, PLENTY).result()

    (line,) = lines_of(failed, "a batch failed")
    assert (0, ["a"]) == (line["shard"], line["ids"])
    assert line["error"].startswith("KeyError: ")
    assert line["exception"].startswith(line["error"])
    assert 2 == failed.log.count("KeyError: ")
