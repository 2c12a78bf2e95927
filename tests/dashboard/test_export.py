"""A list as a file: what its pages show, masked as they are, in bounded parts."""

import csv
import json
import re
from html import unescape
from io import StringIO
from typing import Any
from urllib.parse import urlencode

import pytest

from lowkiq_lambda import Lowkiq
from lowkiq_lambda.dashboard.pages import export
from lowkiq_lambda.operate.inspect import job_list
from lowkiq_lambda.operate.inspect.id_scan import scan_ids
from tests.dashboard.conftest import MakeBrowser
from tests.kit.accounts import READER
from tests.kit.handlers import FailingHandler
from tests.kit.job_pages import fail, ids_on, link
from tests.kit.web import Answer, Browser
from tests.kit.workers import declare


def rows(answer: Answer) -> list[dict[str, str]]:
    """The lines of a CSV file by the names of the columns."""
    return [*csv.DictReader(StringIO(answer.text))]


def file_of(browser: Browser, worker: Any, listed: str, kind: str = "csv", **query: object) -> Answer:
    """The export of a list."""
    return browser.get(f"/export?{urlencode({'queue': worker.queue_name, 'list': listed, 'format': kind, **query})}")


def test_sk21_a_list_is_exported_as_its_pages_show_it(
    app: Lowkiq, worker: Any, handler: FailingHandler, make_browser: MakeBrowser
) -> None:
    """SK-21: all of its jobs in their order, beyond one page; its links keep the filter; for readers, too."""
    browser = make_browser(READER)
    fail(app, worker, handler, "order-bad")
    worker.push_many([{"id": f"order-{number:03}", "delay": number, "payload": {"n": number}} for number in range(150)])
    page = browser.get(link("waiting", worker, by="id", range="gte", value="order-1"))
    (address,) = re.findall(r'<a id="export-csv" href="\.(.*?)"', page.text)

    answer = browser.get(unescape(address))

    ids = [f"order-{number}" for number in range(100, 150)] + ["order-bad"]
    assert ids == [row["id"] for row in rows(answer)] == ids_on(page)
    assert "text/csv; charset=utf-8" == answer.headers["content-type"]
    assert answer.headers["content-disposition"].startswith('attachment; filename="queue-')
    assert ("1", '{"of":"order-bad"}') == (rows(answer)[-1]["failures"], rows(answer)[-1]["payload"])
    assert "order-bad is broken" == rows(answer)[-1]["error"]
    assert re.fullmatch(r"2027-01-15T08:0\d:\d\d\.\d+Z", rows(answer)[0]["due_at"])

    told = file_of(browser, worker, "waiting", "json").json
    assert (151, None, worker.queue_name) == (len(told["jobs"]), told["next"], told["queue"])
    assert {"id": "order-000", "payloads": 1, "failures": 0, "error": None}.items() <= told["jobs"][0].items()


def test_an_export_of_the_morgue_and_of_what_is_in_flight(app: Lowkiq, queue_name: str, browser: Browser) -> None:
    """The other lists are exported by the same links."""
    handler = FailingHandler()
    worker: Any = declare(app, queue_name, handler, max_retry_count=0)
    fail(app, worker, handler, "dead")
    worker.push_many([{"id": "flies"}])
    seen: list[Answer] = []
    handler.meanwhile = lambda: seen.append(file_of(browser, worker, "processing"))
    app.drain()

    assert ["flies"] == [row["id"] for row in rows(seen[0])]
    (dead,) = rows(file_of(browser, worker, "morgue"))
    assert ("dead", "dead is broken") == (dead["id"], dead["error"])
    assert "dead_since" in dead
    assert 'id="export-json"' in browser.get(link("processing", worker)).text


@pytest.mark.parametrize("kind", ["csv", "json"])
def test_a_file_ends_at_a_bound_and_says_where_the_next_one_begins(
    worker: Any, browser: Browser, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    """API Gateway takes no large response: each job is in one of the parts, and the last one says that it is."""
    worker.push_many([{"id": f"order-{number:03}"} for number in range(250)])
    monkeypatch.setattr(export, "MOST_BYTES", 100)
    bounded = {"find": "order-", "by": "due_at", "range": "gte", "value": "1"}
    query = {"queue": worker.queue_name, "list": "waiting", "format": kind, **bounded}
    address = f"/export?{urlencode(query)}"
    found: list[str] = []
    parts = 0
    while address:
        answer, address = browser.get(address), ""
        parts += 1
        if kind == "json":
            told = answer.json
            found += [job["id"] for job in told["jobs"]]
            address = f"/{told['next']}" if told["next"] else ""
        else:
            ids = [row["id"] for row in rows(answer)]
            found += [job_id for job_id in ids if not job_id.startswith("more: ")]
            address = "/" + ids[-1].removeprefix("more: ") if ids[-1].startswith("more: ") else ""

    assert [f"order-{number:03}" for number in range(250)] == sorted(found)
    assert 3 == parts


def test_a_part_for_the_gateway_is_small(worker: Any, browser: Browser, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever asks through API Gateway gets the smaller bound, whoever asks the daemon the larger one."""
    worker.push_many([{"id": number} for number in range(250)])
    monkeypatch.setattr(export, "MOST_BYTES_OF_GATEWAY", 100)
    served = browser.app

    async def behind_gateway(scope: Any, receive: Any, send: Any) -> None:
        await served({**scope, "aws.event": {}}, receive, send)

    assert 250 == len(file_of(browser, worker, "waiting", "json").json["jobs"])
    browser.app = behind_gateway
    assert 100 == len(file_of(browser, worker, "waiting", "json").json["jobs"])


def test_a_file_says_that_jobs_are_missing(worker: Any, browser: Browser, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where a list is too long to be put into the order of its ids, as its page does."""
    worker.push_many([{"id": number} for number in range(600)])
    monkeypatch.setattr(job_list, "scan_ids", lambda reader, search, _at_most: (scan_ids(reader, search, 1)[0], True))

    assert file_of(browser, worker, "waiting", "json", by="id").json["cut"]
    assert file_of(browser, worker, "waiting", by="id").text.endswith('so jobs are missing"\r\n')
    assert not file_of(browser, worker, "waiting", "json").json["cut"]


def test_payloads_of_a_file_are_masked(worker: Any, make_browser: MakeBrowser) -> None:
    """P10: as on the page; where the mask fails, the payload is left out."""

    def mask(_queue: str, job_id: str, payload: object) -> object:
        if job_id == "bad":
            raise ValueError(payload)
        return {"card": "…"}

    worker.push_many([{"id": name, "payload": {"card": "no-4711"}} for name in ("bad", "good")])
    text = file_of(make_browser(mask=mask), worker, "waiting").text

    assert "no-4711" not in text
    assert '"{""card"":""…""}"' in text
    assert "(the mask failed)" in text


def test_no_cell_of_a_file_is_a_formula(worker: Any, browser: Browser) -> None:
    """E-84: a spreadsheet performs none of what clients push; JSON has ids as they are."""
    hostile = ["=cmd|' /C calc'!A0", "+1", "-1", "@SUM(1)", "\t=1", 'a,"b"\r\n=1', "a\0b"]
    worker.push_many([{"id": job_id, "payload": "=1"} for job_id in hostile])

    cells = [cell for row in rows(file_of(browser, worker, "waiting")) for cell in row.values()]

    assert [] == [cell for cell in cells if cell[:1] in {"=", "+", "-", "@", "\t", "\r"}]
    assert {"'=cmd|' /C calc'!A0", "'+1", "'-1", r"a\u0000b"} <= {*cells}
    told = json.loads(file_of(browser, worker, "waiting", "json").text)
    assert sorted(hostile) == sorted(job["id"] for job in told["jobs"])


def test_a_file_that_is_read_with_semicolons_has_no_formula(worker: Any, browser: Browser) -> None:
    """E-84: much of Europe separates so, and a comma then ends no cell; each cell is quoted."""
    hostile = ["a;=1+1;b", 'a;"=1+1"', "a\t@SUM(1)", "a; +1", "a\n=1", "fine;text"]
    worker.push_many([{"id": job_id} for job_id in hostile])

    text = file_of(browser, worker, "waiting").text

    cells = [cell for separator in ";\t" for row in csv.reader(StringIO(text), delimiter=separator) for cell in row]
    assert [] == [cell for cell in cells if cell.strip(' "')[:1] in {*"=+-@"}]
    assert '"fine;text"' in text
    assert [] == [line for line in text.splitlines() if line[:1] not in {'"', "'"}]


def test_what_cannot_be_exported_is_refused(worker: Any, browser: Browser, make_browser: MakeBrowser) -> None:
    """By a page that says why, not by half of a file; strangers get nothing."""
    assert 404 == browser.get("/export?queue=nobody&list=waiting&format=csv").status
    assert 400 == file_of(browser, worker, "shards").status
    assert 400 == file_of(browser, worker, "waiting", "xml").status
    assert "is not a number" in file_of(browser, worker, "waiting", by="retry_count", range="gte", value="many").words
    assert 400 == file_of(browser, worker, "waiting", after="here").status
    assert "sign-in" in file_of(make_browser(None), worker, "waiting").location
