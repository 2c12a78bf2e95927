"""Points of clients: a request that is sent and not answered."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import requests
from requests.adapters import BaseAdapter

from lowkiq_lambda import ConfigError, Worker
from lowkiq_lambda.testing import AppUnderTest, Effect
from lowkiq_lambda.testing.fuzz.options import FuzzOptions, all_options
from lowkiq_lambda.testing.fuzz.report import FuzzReport
from lowkiq_lambda.testing.fuzz.run import fuzz
from lowkiq_lambda.testing.fuzz.watch import objects_of
from tests.fuzz import planted
from tests.fuzz.payloads import STATUSES, Status

charges: list[str] = []
booked: set[str] = set()


class Provider(BaseAdapter):
    """The double of a provider, behind the real client."""

    def send(self, request: Any, *_rest: Any, **_more: Any) -> requests.Response:
        """Charge."""
        charges.append(request.headers["Charge"])
        response = requests.Response()
        response.status_code, response.url, response.request = 200, request.url, request
        return response

    def close(self) -> None:
        """Nothing is open."""


client = requests.Session()
client.mount("pay://", Provider())


@planted.app.worker
class Charge(Worker[Status]):
    """It charges and books in one line, so no line is between."""

    merge = "never"

    def perform_job(self, job: Any) -> None:
        """Charge what is not booked."""
        for payload, score in zip(job.payloads, job.scores, strict=True):
            key = f"{job.id} {payload.status} {score}"
            _ = key in booked or (charge(key).ok and booked.add(key))  # type: ignore[func-returns-value]  # in one line


def charge(key: str) -> requests.Response:
    """By HTTP; the query has a secret."""
    return client.post("pay://provider/charges?secret=x", headers={"Charge": key})


@pytest.fixture(autouse=True)
def empty() -> Iterator[None]:
    """Nothing is charged."""
    yield
    charges.clear()
    booked.clear()


OPTIONS: Any = {
    "effects": {"charge": Effect(lambda: charges)},
    "isolate": (charges, booked),
    "outside": [charge, Provider],
    "payloads": STATUSES,
    "faults": ["die"],
    "scenarios": 25,
}


def fuzzed(kit: AppUnderTest, **options: Any) -> FuzzReport:
    """The report."""
    return fuzz(kit.app, kit.clock, Charge, FuzzOptions(**options))  # type: ignore[typeddict-item]  # a dict by its names


STORY = "  2. drain, and the process dies before the answer of the request POST pay://provider/charges"


def test_a_request_that_is_sent_and_not_answered(lowkiq: AppUnderTest) -> None:
    """By the library, or by a client; without them nobody dies there. The place has no query, which may be secret."""
    options = {**OPTIONS, "outside": [Provider]}

    [finding] = fuzzed(lowkiq, **options, watch=["requests"]).findings

    assert ("effect charge", STORY) == (finding.fault_class, finding.story[1])
    for subject in (client, "tests.fuzz.test_watch:client"):
        [again] = fuzzed(lowkiq, **options, watch=[subject], plan=finding.plan).findings
        assert finding.story == again.story
    assert [] == fuzzed(lowkiq, **options, plan=finding.plan).findings


def test_calls_of_doubles_are_no_points(lowkiq: AppUnderTest) -> None:
    """No process dies within the world outside."""
    report = fuzzed(lowkiq, **OPTIONS, watch=["requests"])

    assert [] == report.findings
    assert 0 < report.scenarios


@pytest.mark.parametrize("subject", [object(), "nowhere", "httpx_is_not_here.Client.send"])
def test_what_has_no_calls_is_refused(lowkiq: AppUnderTest, subject: object) -> None:
    """With its name."""
    with pytest.raises(ConfigError, match=r"watch=: .* cannot be watched: "):
        lowkiq.fuzz(Charge, **{**OPTIONS, "watch": [subject]})


def test_objects_in_the_project_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By their names; functions stay names, as it is in their module that another stands in their place."""
    (tmp_path / "pyproject.toml").write_text("""
        [tool.lowkiq.fuzz.Charge]
        isolate = ["tests.fuzz.test_watch:charges", "tests.fuzz.test_watch:booked"]
        watch = ["tests.fuzz.test_watch:client", "tests.fuzz.test_watch:charge", "requests", "nowhere:client"]
    """)
    monkeypatch.chdir(tmp_path)

    options = all_options(Charge, {})

    assert (charges, booked) == options["isolate"]
    assert [client, *options["watch"][1:]] == objects_of(options["watch"])
