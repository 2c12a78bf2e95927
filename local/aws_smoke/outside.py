"""The outside of a stack: its inbox, its dashboard's API, the runs in its log, and the numbers of CloudWatch."""

import json
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from threading import Event
from typing import Any, Final
from urllib.error import HTTPError, URLError
from urllib.parse import urlencode, urlsplit
from urllib.request import Request, urlopen

from local.aws_smoke.app.smoke import MARK, Record
from local.trial.ledger import Verdict, judged
from lowkiq_lambda.aws.sqs_inbox import SqsInbox
from lowkiq_lambda.base.errors import LowkiqError
from lowkiq_lambda.stack.cloud.access import CloudAccess

_IDS: Final = 50
_PAYLOADS: Final = 5
"""Of each id in one push, so that payloads pile up."""
_RETRIED: Final = {409, 429, 500, 502, 503, 504}
"""What passes by itself: a group that waits for its shards, throttling, a cold start that took too long."""


class SmokeFailed(LowkiqError):
    """A step did not show what it is for."""


def until(what: str, is_true: Callable[[], bool], seconds: float, rest: float) -> None:
    """Look again and again, `rest` seconds apart. Raises SmokeFailed after so many seconds."""
    ends_at = time.monotonic() + seconds
    while not is_true():
        if time.monotonic() > ends_at:
            raise SmokeFailed(f"{what} did not come within {seconds:.0f} s")
        time.sleep(rest)


class Pushes:
    """Numbers for some ids, pushed into an inbox. `accepted`: the last number of each id, which began at 1."""

    def __init__(self, inbox: SqsInbox) -> None:
        self.inbox = inbox
        self.accepted: dict[str, int] = {}

    @property
    def count(self) -> int:
        """How many there were."""
        return sum(self.accepted.values())

    def push_until(self, count: int) -> None:
        """Push some of each id, and again, until there were so many."""
        while self.count < count:
            last = {f"id-{number}": self.accepted.get(f"id-{number}", 0) for number in range(_IDS)}
            each = [(id, n) for id, before in last.items() for n in range(before + 1, before + _PAYLOADS + 1)]
            self.inbox.push_many(Record, [{"id": id, "payload": n, "score": n} for id, n in each])
            self.accepted |= {id: before + _PAYLOADS for id, before in last.items()}

    @contextmanager
    def going_on(self, rest: float) -> Iterator[None]:
        """Meanwhile a thread pushes some of each id, `rest` seconds apart. Raises its error."""
        stopped = Event()

        def push() -> None:
            while not stopped.wait(rest):
                self.push_until(self.count + 1)

        with ThreadPoolExecutor(1) as pool:
            pushing = pool.submit(push)
            try:
                yield
            finally:
                stopped.set()
            pushing.result()


class Dashboard:
    """The JSON API of a stack's dashboard, for a program with a token.

    `requests` counts calls; `trouble` is the error of the last one.
    """

    def __init__(self, url: str, token: str, address: str = "") -> None:
        self._url = address or url
        # Not every resolver knows that names below localhost are this machine.
        self._headers = {"Host": urlsplit(url).netloc, "Authorization": f"Bearer {token}"}
        self.requests = 0
        self.trouble = ""

    def get(self, path: str, **query: str) -> Any:  # noqa: ANN401 - whatever the API answers
        """The answer; None if it has to be asked for again."""
        return self._answer(Request(self._at(path, query), headers=self._headers))  # noqa: S310 - of our own stack

    def post(self, path: str, **body: object) -> Any:  # noqa: ANN401 - as of get
        """The answer; None if it has to be asked for again."""
        headers = {**self._headers, "Content-Type": "application/json"}
        return self._answer(Request(self._at(path, {}), json.dumps(body).encode(), headers))  # noqa: S310 - as above

    def _at(self, path: str, query: Mapping[str, str]) -> str:
        return f"{self._url.rstrip('/')}/api/v1/{path}{'?' + urlencode(query) if query else ''}"

    def _answer(self, request: Request) -> Any:  # noqa: ANN401 - as of get
        self.requests += 1
        try:
            with urlopen(request, timeout=60) as answer:  # noqa: S310 - as above
                self.trouble = ""
                return json.load(answer)
        except URLError as error:  # its name may not be known yet
            if isinstance(error, HTTPError) and error.code not in _RETRIED:
                raise
            self.trouble = str(error)
            return None


def log_lines(cloud: CloudAccess, function: str, since: float) -> list[str]:
    """All lines of a function's log since that time."""
    pages = cloud.client("logs").get_paginator("filter_log_events")
    name, first = f"/aws/lambda/{function}", int(since * 1_000)
    events = [event for page in pages.paginate(logGroupName=name, startTime=first) for event in page["events"]]
    return [line for event in events for line in event["message"].splitlines()]


def judged_runs(accepted: Mapping[str, int], lines: Iterable[str], *, in_order: bool) -> Verdict:
    """The verdict on the runs in a log, by the functions' clocks; a token that falls counts as out of order."""
    runs = []
    for text in lines:
        if text.startswith("{") and MARK in text:
            line = json.loads(text)
            runs += [(began, ended, id, numbers, line["token"]) for id, numbers, began, ended in line[MARK]]
    rows, highest, fallen = [], dict[str, int](), list[str]()
    for name, (began, ended, id, numbers, token) in enumerate(sorted(runs)):
        rows += [(began, 1, ["start", id, str(name), numbers, 0]), (ended, 0, ["end", id, str(name)])]
        if token < highest.get(id, 0):
            fallen.append(f"{id}: token {token} after {highest[id]}")
        highest[id] = max(highest.get(id, 0), token)
    verdict = judged(accepted, [json.dumps(row) for *_, row in sorted(rows, key=lambda row: row[:2])])
    verdict.out_of_order = (verdict.out_of_order if in_order else []) + fallen
    return verdict


def metric_sum(cloud: CloudAccess, name: str, function: str, since: float) -> float:
    """The sum of a metric of Lambda since that time, as far as CloudWatch has it."""
    answer = cloud.client("cloudwatch").get_metric_statistics(
        Namespace="AWS/Lambda",
        MetricName=name,
        Dimensions=[{"Name": "FunctionName", "Value": function}],
        StartTime=datetime.fromtimestamp(since, UTC) - timedelta(minutes=1),
        EndTime=datetime.now(UTC) + timedelta(minutes=1),
        Period=60,
        Statistics=["Sum"],
    )
    return float(sum(point["Sum"] for point in answer["Datapoints"]))
