"""The page of features: in which files each one lies, by the names that its code uses."""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from lint.reference.sources import ROOT
from lint.reference.tables import code, table

_PACKAGE: Final = ROOT / "lowkiq_lambda"
_LEAST: Final = 3
"""A file that uses a feature's names less often only passes them on."""
_MOST: Final = 12
_FEATURES: Final[Mapping[str, str]] = {
    "retries and the morgue": r"retry_in|retry_count|max_retry_count|morgue\w*|retries_exhausted",
    "suspects: ids that run alone": r"suspects?|suspect_\w+|runs_together|run_alone|crash_count|blame\w*",
    "dead heads": r"dead_heads?|blocked_head|blocked_since",
    "limits and rates of a queue": r"max_running|ids_left|admission|admit\w*|QueueLimits|permits?|rate",
    "tenants": r"tenants?|tenant_rate|lanes?",
    "debouncing": r"[Dd]ebounc\w*",
    "merge by the latest": r"MARKS|superseded?|needs_score|by_latest|put_latest|raise_marks|has_marks",
    "unique keys": r"key_ttl|receipts?|RECEIPTS",
    "uniqueness": r"unless|UNIQUE|on_conflict|has_unique|conflicts|replacement",
    "headers": r"HEADERS|HAS_HEADERS|new_headers|join_headers|headers_of|has_headers",
    "expiry": r"EXPIRY|HAS_EXPIRY|expires_(?:in|at)|expir(?:y|ies|ed)|retry_for|has_expiry",
    "requests": r"REQUESTS|has_requests|JobRequest|Requested|pause_jobs|resume_jobs|RequestsFull",
    "run time": r"max_run_time|max_run_items|RunLimits|LimitedContext",
    "jobs with a cursor": r"cursor|iteration\w*|checkpoint\w*|JobProgress",
    "several batches at once": r"concurrency|ConcurrentVisit|SlotPool|LoopSlots|ThreadSlots|side_by_side",
    "advice on costs": r"advise|Advice|QueueLoad|MonthLoad|WayToRun|ways_of|ServiceBill",
    "numbers that holders find": r"[Tt]uning|Tuned|Auto|CallsTuner|IdsTuner|tuned|is_tuned|read_tuned",
    "coroutine handlers": r"coroutine\w*|event_loop|EventLoop|use_loop|adrain|LoopSlots",
    "typed payloads": r"payload_type|plain_payload|plain_jobs|declared_type|typed|convert",
    "tasks": r"TRACKING|TASKS|ItemRef|TaskRecords?|TaskOperations|task_id|items_of|has_tracking",
    "schedules": r"ScheduleEntry|Timetable|TIMETABLE|schedules|fires_schedules",
    "duties": r"Duty|DutyRunner|DutyClaims?|duties",
    "shards that are counted": r"Auto|AutoLook|AutoDecision|auto_of|count_of|Proposal|AutoState",
    "simulation": r"simulate\w*|Choice|Trace|Outcome|ChoiceComparison|TriedChoice",
    "moves between shard counts": r"resharding|Resharding|is_moving|layout|MOVING|carry\w*|receiving|moved\w*",
    "buffered pushes": r"when_unavailable|[Rr]edelivery|Reliable\w*|buffer\w*|Buffer\w*",
    "waking of idle shards": r"[Ww]aker|wake\w*|start_drains|continu\w+|fan_out",
    "journal and its verdicts": r"journal\w*|Verifier|Ledger",
    "kept runs": r"RUNS|keep_runs|KeepRuns|RunColumns|RunPage|RunFilter|has_runs",
    "history and charts": r"[Hh]istory|Recorder|History\w*",
    "repair of damage": r"repair\w*|[Dd]amaged?|SHELF|sound\w*",
    "sign-in to the dashboard": r"Auth|Gate|[Tt]hrottle\w*|sign_?in|signed_out",
    "ways in on AWS": r"MappingFunctions?|Incoming|Inboxes|SqsInbox|Outbox",
    "namespaces": r"namespace\w*|key_prefix",
    "middlewares and observers": r"\w*middlewares?|observers?|push_through|push_within|compose",
    "recovery from dead holders": r"recover\w*|dead_holders?|release_dead|DeadHolders?",
    "stops and signals": r"signals?|SIGTERM|quiet|obey\w*|Lifecycle",
    "heartbeats of processes": r"[Hh]eartbeats?\w*|Processes",
}
_INTRODUCTION: Final = """\
# Feature to files

With this page you know which files to open for a feature. A file is listed if its code uses the names of the feature
at least three times; those with the most uses come first. Features are vertical and rooms are not, so most of them have
files in several rooms: [architecture](../architecture.md) says what each room is for.
"""


def page() -> str:
    """The text of the page."""
    return f"{_INTRODUCTION}\n{table(('feature', 'Python', 'Lua'), _rows())}\n"


def _rows() -> Iterator[list[str]]:
    sources = {kind: {path: _code_of(path) for path in sorted(_PACKAGE.rglob(f"*.{kind}"))} for kind in ("py", "lua")}
    for feature, names in _FEATURES.items():
        pattern = re.compile(rf"\b(?:{names})\b")
        yield [feature, *(_files(files, pattern) for files in sources.values())]


def _files(sources: Mapping[Path, str], pattern: re.Pattern[str]) -> str:
    uses = {path: len(pattern.findall(text)) for path, text in sources.items()}
    found = sorted((path for path, times in uses.items() if times >= _LEAST), key=lambda path: (-uses[path], path))
    more = f" and {len(found) - _MOST} more" if len(found) > _MOST else ""
    return ", ".join(code(_short(path)) for path in found[:_MOST]) + more


def _short(path: Path) -> str:
    return path.relative_to(_PACKAGE / "store" / "lua" if path.suffix == ".lua" else _PACKAGE).as_posix()


def _code_of(path: Path) -> str:
    """The file without its comments and docstrings."""
    text = path.read_text()
    if path.suffix == ".lua":
        return re.sub(r"--[^\n]*", "", text)
    return re.sub(r'"""(?:.|\n)*?"""|#[^\n]*', "", text)
