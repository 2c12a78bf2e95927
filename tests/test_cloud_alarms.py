"""Alarms of the local cloud, in its own Python, with the clock moved by hand."""

import json
import subprocess
from pathlib import Path
from typing import Any

import yaml

from tests.kit.servers.cloud import cloud_program

ROOT = Path(__file__).parents[1]
CLOUD = ROOT / "lowkiq_lambda" / "stack" / "cloud"
PROGRAM = """
import importlib, json, sys, time

sys.path.append(sys.argv[1])
metrics = importlib.import_module("inside.metrics").CloudMetrics()
watch = importlib.import_module("inside.watching").Watch(metrics)
watch.install()
provisioners = importlib.import_module("ministack.services.cloudformation.provisioners")
cloudwatch = importlib.import_module("ministack.services.cloudwatch")
clock = time.time
states = []
first = clock() // 300 * 300 + 1
given = json.load(sys.stdin)
time.time = lambda: first
for name, properties in given["alarms"].items():
    provisioners._cw_metric_alarm_put(name, properties)
for minute, lines in enumerate(given["minutes"]):
    time.time = lambda: first + 60 * minute
    for line in lines:
        if line == "failed":
            metrics.add_invocation("drain", 5, {}, failed=True)
        else:
            metrics.add_log(line)
    time.time = lambda: first + 60 * (minute + 1)
    watch.look(time.time())
    states.append({name: alarm["StateValue"] for name, alarm in cloudwatch._alarms.items()})
print(json.dumps(states))
"""
SILENCE = {
    "Namespace": "lowkiq",
    "MetricName": "oldest_due_age",
    "Dimensions": [{"Name": "function", "Value": "drain"}],
    "Statistic": "SampleCount",
    "Period": 60,
    "ComparisonOperator": "LessThanThreshold",
    "Threshold": 1,
    "EvaluationPeriods": 2,
    "TreatMissingData": "breaching",
}
LATE = SILENCE | {
    "Statistic": "Maximum",
    "ComparisonOperator": "GreaterThanThreshold",
    "Threshold": "300",
    "EvaluationPeriods": 2,
    "TreatMissingData": "ignore",
}


def failures() -> dict[str, Any]:
    """The template's own alarm over several metrics, as CloudFormation resolves it."""
    text = (ROOT / "template.yaml").read_text().partition("\n  FailureAlarm:\n")[2].partition("\n  SilenceAlarm:\n")[0]
    resolved = text.replace("!Ref DrainFunction", "drain").replace("!GetAtt FailureQueue.QueueName", "failures")
    lines = [line for line in resolved.splitlines() if "Actions:" not in line]
    properties: dict[str, Any] = yaml.safe_load("\n".join(lines))["Properties"]
    return properties


def tick(age: float) -> str:
    """What a housekeeping run logs."""
    directive = {
        "Namespace": "lowkiq",
        "Dimensions": [["function"]],
        "Metrics": [{"Name": "oldest_due_age", "Unit": "Seconds"}],
    }
    return json.dumps({"_aws": {"CloudWatchMetrics": [directive]}, "function": "drain", "oldest_due_age": [age]})


def test_alarms_ring_by_what_functions_log() -> None:
    """By the metrics of logs and those of Lambda, by what is missing, and by several metrics at once."""
    minutes = [[tick(1)], [tick(400)], [tick(500)], [], [], [tick(2), "failed"], [tick(2)]]

    done = subprocess.run(
        [cloud_program().with_name("python"), "-P", "-c", PROGRAM, CLOUD],
        input=json.dumps({"alarms": {"silence": SILENCE, "late": LATE, "failures": failures()}, "minutes": minutes}),
        capture_output=True,
        text=True,
        check=True,
    )
    states = json.loads(done.stdout.splitlines()[-1])

    assert ["OK", "OK", "OK", "OK", "ALARM", "OK", "OK"] == [each["silence"] for each in states]
    assert ["OK", "OK", "ALARM", "ALARM", "ALARM", "OK", "OK"] == [each["late"] for each in states]
    assert ["OK"] * 5 + ["ALARM"] * 2 == [each["failures"] for each in states]
