"""Pushes at a steady rate by several ways at once, and counts what was accepted."""

import json
import threading
import time
from collections.abc import Callable
from typing import Any, Final, Self

from local.trial.app.jobs import Record
from lowkiq_lambda.aws.sqs_inbox import SqsInbox
from lowkiq_lambda.stack.cloud.access import CloudAccess

IDS: Final = 40
"""Of each way but events: each id gets many payloads, and is often busy."""
RATES: Final = {"direct": 30, "inbox": 10, "stream": 5, "events": 5}
"""Pushes a second: 50 together."""
_TURN: Final = 0.2
SOURCE: Final = "trial"
TABLE: Final = "trial"


class Pushing:
    """A thread for each way, which goes on while it is not stopped."""

    def __init__(self, cloud: CloudAccess, inbox_url: str) -> None:
        self.accepted: dict[str, int] = {}
        """How many payloads of each id: their numbers are 1, 2, 3 to that."""
        self.slowest = 0.0
        """Seconds of the longest call of a producer."""
        self._stopped = threading.Event()
        self._errors: list[BaseException] = []
        dynamodb, events = cloud.client("dynamodb"), cloud.client("events")
        inbox = SqsInbox(inbox_url)

        def direct(jobs: list[dict[str, Any]]) -> None:
            Record.push_many(jobs)

        def by_inbox(jobs: list[dict[str, Any]]) -> None:
            inbox.push_many(Record, jobs)

        def by_stream(jobs: list[dict[str, Any]]) -> None:
            for job in jobs:
                item = {"id": {"S": job["id"]}, "number": {"N": str(job["payload"])}}
                dynamodb.put_item(TableName=TABLE, Item=item)

        def by_events(jobs: list[dict[str, Any]]) -> None:
            details = [json.dumps({"id": job["id"], "number": job["payload"]}) for job in jobs]
            events.put_events(Entries=[{"Source": SOURCE, "DetailType": "Change", "Detail": each} for each in details])

        ways = {"direct": direct, "inbox": by_inbox, "stream": by_stream, "events": by_events}
        self._threads = [threading.Thread(target=self._push, args=way, name=way[0]) for way in ways.items()]

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopped.set()
        for thread in self._threads:
            thread.join()
        if self._errors:
            raise self._errors[0]

    def by_way(self) -> dict[str, int]:
        """How many payloads were accepted by each way."""
        return {way: sum(n for id, n in self.accepted.items() if id.startswith(f"{way}-")) for way in RATES}

    def _push(self, way: str, push: Callable[[list[dict[str, Any]]], None]) -> None:
        started_at, pushed = time.monotonic(), 0
        while not self._stopped.wait(_TURN):
            due = int((time.monotonic() - started_at) * RATES[way]) - pushed
            # Events have no order: each has an id of its own.
            ids = [f"{way}-{pushed + n if way == 'events' else (pushed + n) % IDS}" for n in range(due)]
            for first in range(0, len(ids), 10):
                try:
                    self._push_once(ids[first : first + 10], push)
                except Exception as error:  # noqa: BLE001 - it is raised at the end
                    self._errors.append(error)
                    return
            pushed += due

    def _push_once(self, ids: list[str], push: Callable[[list[dict[str, Any]]], None]) -> None:
        jobs: list[dict[str, Any]] = [{"id": id, "payload": self.accepted.get(id, 0) + 1} for id in ids]
        called_at = time.monotonic()
        push(jobs)
        self.slowest = max(self.slowest, time.monotonic() - called_at)
        self.accepted |= {job["id"]: job["payload"] for job in jobs}
