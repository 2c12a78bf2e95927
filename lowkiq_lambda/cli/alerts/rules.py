"""The rules of Prometheus about an app, and their file."""

import json
from collections.abc import Iterator
from typing import Final, Literal, NamedTuple


class AlertRule(NamedTuple):
    """A rule. `lasts`: for how long the expression has to hold. `summary` may name a label as {{ $labels.queue }}."""

    name: str
    expression: str
    lasts: str
    severity: Literal["critical", "warning"]
    summary: str
    advice: str


_QUEUE: Final = "Queue {{ $labels.queue }}"
_FAILED: Final = "rate(lowkiq_queue_failed_total[15m])"
_DONE: Final = "rate(lowkiq_queue_done_total[15m])"
_TOOK: Final = "histogram_quantile(0.95, sum by (queue, le) (rate(lowkiq_queue_took_seconds_bucket[30m]{})))"
RULES: Final = (
    AlertRule(
        "LowkiqRedisAway",
        "lowkiq_up == 0",
        "2m",
        "critical",
        "The dashboard cannot read Redis",
        "Look at the server; pushes and drains go on by themselves once it answers.",
    ),
    AlertRule(
        "LowkiqRedisMemory",
        "lowkiq_redis_memory_bytes / lowkiq_redis_memory_limit_bytes > 0.8",
        "10m",
        "critical",
        "Redis {{ $labels.server }} uses {{ $value | humanizePercentage }} of its maxmemory",
        "Give it more memory, or drain the largest queues: `lowkiq doctor --all` prints the memory of each.",
    ),
    AlertRule(
        "LowkiqNoProcess",
        'sum(lowkiq_processes{state=~"starting|running"}) == 0 and sum(lowkiq_queue_oldest_due_age_seconds) > 60',
        "2m",
        "critical",
        "Jobs are due, and no process drains",
        "Start the daemon, or look at the drain function.",
    ),
    AlertRule(
        "LowkiqProcessGone",
        'lowkiq_processes{state="gone"} > 0',
        "1m",
        "warning",
        "{{ $value }} processes have sent no heartbeat for a minute",
        "`lowkiq processes` names them. Their jobs are recovered once their leases have ended.",
    ),
    AlertRule(
        "LowkiqQueueLate",
        "lowkiq_queue_lag_seconds > 300",
        "5m",
        "warning",
        f"{_QUEUE}: the oldest due job has waited for {{{{ $value | humanizeDuration }}}}",
        "`lowkiq why {{ $labels.queue }}` says whether jobs fail, hang, or are more than the processes can do.",
    ),
    AlertRule(
        "LowkiqQueueSlow",
        f"{_TOOK.format('')} > 3 * {_TOOK.format(' offset 1d')} and {_TOOK.format('')} > 1",
        "15m",
        "warning",
        f"{_QUEUE}: 5% of the batches take {{{{ $value | humanizeDuration }}}} or more, three times yesterday's",
        "Look at what the handler calls: `lowkiq why {{ $labels.queue }}` says whether the queue is late by that.",
    ),
    AlertRule(
        "LowkiqQueueFailing",
        f"{_FAILED} / ({_FAILED} + {_DONE}) > 0.25 and increase(lowkiq_queue_failed_total[15m]) >= 5",
        "5m",
        "warning",
        f"{_QUEUE}: {{{{ $value | humanizePercentage }}}} of the ids fail",
        "`lowkiq errors {{ $labels.queue }}` groups them; retries go on meanwhile.",
    ),
    AlertRule(
        "LowkiqDeadJobs",
        "increase(lowkiq_queue_dead_total[15m]) > 0",
        "0m",
        "warning",
        f"{_QUEUE}: jobs have died",
        "`lowkiq ls {{ $labels.queue }} --in morgue` lists them; `lowkiq requeue` has them tried again.",
    ),
    AlertRule(
        "LowkiqBlockedIds",
        "lowkiq_queue_blocked > 0",
        "5m",
        "warning",
        f"{_QUEUE}: {{{{ $value }}}} ids are blocked by a dead head",
        "`lowkiq unblock {{ $labels.queue }} --all` lets them go on.",
    ),
    AlertRule(
        "LowkiqPausedWork",
        "lowkiq_queue_paused_lag_seconds > 900",
        "5m",
        "warning",
        f"{_QUEUE} is paused, and its oldest due job has waited for {{{{ $value | humanizeDuration }}}}",
        "`lowkiq resume {{ $labels.queue }}` ends the pause.",
    ),
    AlertRule(
        "LowkiqLimitedWork",
        "lowkiq_queue_limited_lag_seconds > 3600",
        "15m",
        "warning",
        f"{_QUEUE}: limits have kept a job back for {{{{ $value | humanizeDuration }}}}",
        "Compare the limit with what comes in: `lowkiq limits {{ $labels.queue }}`.",
    ),
    AlertRule(
        "LowkiqScheduleLate",
        "lowkiq_schedule_late_seconds > 300",
        "5m",
        "critical",
        f"{_QUEUE}: a planned time of {{{{ $value | humanizeDuration }}}} ago has not fired",
        "Start the daemon, or deploy the function that does housekeeping; `lowkiq schedules list` names the entry.",
    ),
    AlertRule(
        "LowkiqScheduleBroken",
        'lowkiq_schedule_entries{state="broken"} > 0',
        "0m",
        "critical",
        f"{_QUEUE}: {{{{ $value }}}} schedule entries cannot fire",
        "Correct them: `lowkiq schedules list` says why.",
    ),
    AlertRule(
        "LowkiqTaskItemsLost",
        'lowkiq_open_task_items{status="lost"} > 0',
        "0m",
        "critical",
        "{{ $value }} jobs of open tasks are gone from Redis",
        "Find out who deletes keys, or whether Redis evicts them: `lowkiq doctor`; `lowkiq tasks` lists the tasks.",
    ),
    AlertRule(
        "LowkiqMorgueTrimmed",
        "increase(lowkiq_queue_trimmed_total[1h]) > 0",
        "0m",
        "critical",
        f"{_QUEUE}: a bound of the morgue has removed dead payloads",
        "Requeue or delete what lies there, or raise `morgue`.",
    ),
    AlertRule(
        "LowkiqDamagedRecords",
        "increase(lowkiq_queue_damaged_total[1h]) > 0",
        "0m",
        "critical",
        f"{_QUEUE}: unreadable records were set aside",
        "The page of shards shows them. Another program may write into these keys.",
    ),
    AlertRule(
        "LowkiqMismatchedQueue",
        "lowkiq_queue_mismatched == 1",
        "10m",
        "critical",
        f"{_QUEUE} was made with another declaration",
        "`lowkiq doctor` names what differs. No process of this app drains it.",
    ),
    AlertRule(
        "LowkiqDutyFailing",
        "lowkiq_duty_failures > 2",
        "5m",
        "warning",
        "The duty {{ $labels.duty }} fails",
        "`lowkiq doctor` has its last error. The duty `schedules` fires schedule entries.",
    ),
    AlertRule(
        "LowkiqDutyLate",
        "lowkiq_duty_late_seconds > 300",
        "5m",
        "warning",
        "The duty {{ $labels.duty }} has been due for {{ $value | humanizeDuration }}",
        "Start the daemon, or deploy the function that does housekeeping.",
    ),
)
"""The worst first."""


def rules_file() -> str:
    """A rules file of Prometheus, in YAML."""
    return "".join(f"{line}\n" for line in _lines())


def _lines() -> Iterator[str]:
    yield "groups:"
    yield "  - name: lowkiq"
    yield "    rules:"
    for rule in RULES:
        yield f"      - alert: {rule.name}"
        yield f"        expr: {json.dumps(rule.expression)}"
        yield f"        for: {rule.lasts}"
        yield "        labels:"
        yield f"          severity: {rule.severity}"
        yield "        annotations:"
        yield f"          summary: {json.dumps(rule.summary)}"
        yield f"          description: {json.dumps(rule.advice)}"
