"""Rules for Prometheus and a board for Grafana: of metrics and labels that the dashboard really serves."""

import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

import pytest

from lowkiq_lambda import Config, Lowkiq, Rate
from lowkiq_lambda.cli.alerts.board import board_file
from lowkiq_lambda.cli.alerts.rules import RULES, rules_file
from lowkiq_lambda.cli.program import execute
from lowkiq_lambda.dashboard import Auth, Token, dashboard
from lowkiq_lambda.testing import ManualClock
from tests.kit.apps import closing_app
from tests.kit.handlers import Notes
from tests.kit.servers import Server
from tests.kit.web import Browser
from tests.kit.workers import declare, jobs_of

SERIES: Final = re.compile(r"(lowkiq_\w+)(?:\{([^}]*)\})?")
OF_RULES: Final = re.compile(r"\$labels\.(\w+)")
OF_LEGENDS: Final = re.compile(r"\{\{(\w+)\}\}")
SCRAPER: Final = "a-token-of-16-characters-or-more"
FIRING: Final = """
rule_files: [lowkiq.rules.yml]
evaluation_interval: 1m
tests:
  - interval: 1m
    input_series:
      - series: 'lowkiq_queue_failed_total{queue="orders"}'
        values: '0+60x60'
      - series: 'lowkiq_queue_done_total{queue="orders"}'
        values: '0+60x60'
      - series: 'lowkiq_queue_failed_total{queue="mails"}'
        values: '0+1x60'
      - series: 'lowkiq_queue_done_total{queue="mails"}'
        values: '0+60x60'
    alert_rule_test:
      - eval_time: 40m
        alertname: LowkiqQueueFailing
        exp_alerts:
          - exp_labels: {queue: orders, severity: warning}
            exp_annotations:
              summary: 'Queue orders: 50% of the ids fail'
              description: '`lowkiq errors orders` groups them; retries go on meanwhile.'
  - interval: 1m
    input_series:
      - series: 'lowkiq_processes{state="running"}'
        values: '1x10 0x20'
      - series: 'lowkiq_processes{state="starting"}'
        values: '0x30'
      - series: 'lowkiq_queue_oldest_due_age_seconds{queue="orders"}'
        values: '0x10 0+60x20'
    alert_rule_test:
      - eval_time: 10m
        alertname: LowkiqNoProcess
        exp_alerts: []
      - eval_time: 20m
        alertname: LowkiqNoProcess
        exp_alerts:
          - exp_labels: {severity: critical}
            exp_annotations:
              summary: 'Jobs are due, and no process drains'
              description: 'Start the daemon, or look at the drain function.'
"""


@pytest.fixture
def served(own_server: Server, clock: ManualClock) -> dict[str, set[str]]:
    """The names of the metrics of an app with all that has numbers, after some work, each with its labels."""
    own_server.admin.config_set("maxmemory", 1_000_000_000)
    with closing_app(Lowkiq(Config(redis_url=own_server.url, verify=0.5), clock=clock)) as app:
        orders = declare(app, "orders", Notes(), max_running=1, rate=Rate(1_000, 1))
        app.every(60, orders, id="nightly", name="sync")
        app.task("import").push_many(orders, jobs_of("abc"))
        app.drain()
        auth = Auth(tokens=[Token("prometheus", SCRAPER, "reader")])
        browser = Browser(dashboard(app, auth=auth, clock=clock))
        text = browser.ask("GET", "/metrics", {"authorization": f"Bearer {SCRAPER}"}).text
    metrics: dict[str, set[str]] = {}
    for name, labels in re.findall(r"^(lowkiq_\w+)(?:\{(.*)\})? \S+$", text, re.MULTILINE):
        metrics.setdefault(name, set()).update(re.findall(r'(\w+)="', labels))
    return metrics


def unserved(served: dict[str, set[str]], expression: str, labels: Iterable[str] = ()) -> set[str]:
    """Of an expression the metrics that are not served, and the labels, its own and others, that none of them has."""
    series = SERIES.findall(expression)
    missing = {name for name, _ in series if name not in served}
    for name, matchers in series:
        missing |= {*re.findall(r'(\w+)=~?"', matchers)} - served.get(name, set())
    return missing | {*labels} - {"value"}.union(*(served.get(name, set()) for name, _ in series))


def board() -> Any:
    """The board as Grafana reads it."""
    return json.loads(board_file())


def test_rules_are_of_metrics_that_are_served(served: dict[str, set[str]]) -> None:
    """Their names, the labels that they select by, and those that their sentences name."""
    assert {"lowkiq_queue_lag_seconds", "lowkiq_processes", "lowkiq_redis_memory_bytes"} <= {*served}
    assert {} == {
        rule.name: missing
        for rule in RULES
        if (missing := unserved(served, rule.expression, OF_RULES.findall(rule.summary + rule.advice)))
    }
    assert {"lowkiq_queue_nothing"} == unserved(served, "lowkiq_queue_nothing > 0")
    assert {"id"} == unserved(served, 'lowkiq_queue_length{id="a"}')


def test_the_board_is_of_metrics_that_are_served(served: dict[str, set[str]]) -> None:
    """Each expression of each panel, with its legend; no panel lies upon another."""
    panels = board()["panels"]
    targets = [target for panel in panels for target in panel["targets"]]
    places = [(panel["gridPos"]["x"], panel["gridPos"]["y"]) for panel in panels]

    assert {} == {
        target["expr"]: missing
        for target in targets
        if (missing := unserved(served, target["expr"], OF_LEGENDS.findall(target["legendFormat"])))
    }
    assert len(places) == len({*places})
    assert all(panel["gridPos"]["x"] + panel["gridPos"]["w"] <= 24 for panel in panels)


def test_the_command_prints_either(capsys: pytest.CaptureFixture[str]) -> None:
    """Without an app, and without Redis."""
    assert 0 == execute("lowkiq", ["alerts"])
    rules = capsys.readouterr().out
    assert 0 == execute("lowkiq", ["alerts", "--format", "grafana"])

    assert rules_file() == rules
    assert "lowkiq" == json.loads(capsys.readouterr().out)["uid"]


@pytest.mark.skipif(shutil.which("promtool") is None, reason="there is no promtool")
@pytest.mark.parametrize("arguments", [["check", "rules", "lowkiq.rules.yml"], ["test", "rules", "firing.yml"]])
def test_prometheus_takes_the_rules(arguments: list[str], tmp_path: Path) -> None:
    """As they are written; and two of them fire when they are to, and only then."""
    (tmp_path / "lowkiq.rules.yml").write_text(rules_file())
    (tmp_path / "firing.yml").write_text(FIRING)

    done = subprocess.run(
        ["promtool", *arguments], cwd=tmp_path, capture_output=True, text=True, check=False, env={**os.environ}
    )

    assert 0 == done.returncode, done.stdout + done.stderr
