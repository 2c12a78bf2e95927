"""The history of a real repository as jobs: each id is a file, each payload one change of it."""

import gzip
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from tests.kit.order import is_in_order
from tests.kit.replay.app import Applied

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


def check_order(jobs: Sequence[Mapping[str, Any]], path: str, applied: Sequence[Applied]) -> None:
    """All changes of the file were applied, in their order, and the last of them last."""
    count = sum(job["id"] == path for job in jobs)
    numbers = [one.change.number for one in applied]
    assert is_in_order([[number] for number in numbers]), (path, numbers)
    assert set(range(1, count + 1)) == set(numbers)
    assert count == numbers[-1]
