"""What tests read off the pages of a queue."""

import re
from html import unescape
from typing import Any
from urllib.parse import urlencode

from lowkiq_lambda import Lowkiq
from tests.kit.handlers import FailingHandler
from tests.kit.web import Answer


def link(path: str, worker: Any, **query: object) -> str:
    """The address of a page of the worker's queue."""
    return f"/{path}?{urlencode({'queue': worker.queue_name, **query})}"


def ids_on(answer: Answer) -> list[str]:
    """What the first column of the list says."""
    return [unescape(text) for text in re.findall(r'<a id="job-\d+"[^>]*>([^<]*)</a>', answer.text)]


def next_of(answer: Answer) -> str:
    """Where the link to the next page leads."""
    (href,) = re.findall(r'<a id="next"[^>]*href="\./([^"]*)"', answer.text)
    return f"/{unescape(href)}"


def fail(app: Lowkiq, worker: Any, handler: FailingHandler, *ids: str) -> None:
    """Let jobs fail once."""
    worker.push_many([{"id": job_id, "payload": {"of": job_id}} for job_id in ids])
    handler.failing = set(ids)
    app.drain()
    handler.failing = set()
