"""The history of a real repository as jobs: each id is a file, each payload one change of it."""

import gzip
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from lowkiq_lambda import Worker
from tests.proof.history import Event, Recorder

DATA = Path(__file__).parents[2] / "data"


def history() -> list[dict[str, Any]]:
    """Each change of each file as a job, oldest first."""
    numbers: Counter[str] = Counter()
    jobs = []
    with gzip.open(DATA / "file-history.jsonl.gz") as lines:
        for line in lines:
            change = msgspec.json.decode(line)
            path = change["path"]
            numbers[path] += 1
            payload = {"number": numbers[path], "seq": change["seq"], "blob": change["blob"]}
            jobs.append({"id": path, "payload": payload, "score": change["seq"]})
    return jobs


def final_state() -> dict[str, str]:
    """What must be left: each file's content hash, as git has it."""
    return msgspec.json.decode((DATA / "file-history-final.json").read_bytes(), type=dict[str, str])


def push_noted(worker: type[Worker], recorder: Recorder, jobs: Sequence[Mapping[str, Any]]) -> None:
    """Push the jobs in one call, and note it."""
    sent: dict[str, list[int]] = {}
    for job in jobs:
        sent.setdefault(job["id"], []).append(job["payload"]["number"])
    for path, numbers in sent.items():
        recorder.write("push-begin", path, numbers)
    worker.push_many(jobs)
    for path, numbers in sent.items():
        recorder.write("push-end", path, numbers, outcome="ok")


def written_state(events: Iterable[Event]) -> dict[str, str]:
    """What is left of what handlers wrote, in the order of time: each file's content hash."""
    final = {event.id: event.outcome for event in events if event.what == "write"}
    return {path: blob for path, blob in final.items() if blob}
