"""The text of a pytest file that replays the findings of a fuzz."""

import re
from collections.abc import Iterator
from typing import Any, Final

from lowkiq_lambda.declare.worker import Worker
from lowkiq_lambda.testing.fuzz.report import FuzzReport

OF_DJANGO: Final = "lowkiq_lambda.contrib.django.project:app"
"""The app of a project of Django, whose module sets Django up."""


def written_test(worker: type[Worker[Any]], report: FuzzReport, app: str | None) -> str:
    """A module with a test for each finding; its options are those of pyproject.toml, or of the worker's `fuzz()`.

    `app`: MODULE:APP by which the app was loaded, if it was loaded before the worker.
    """
    return "\n".join(_lines(worker, report, app))


def _lines(worker: type[Worker[Any]], report: FuzzReport, app: str | None) -> Iterator[str]:
    name = worker.__name__
    yield f'"""What `lowkiq fuzz` found in {name}."""'
    yield ""
    if app == OF_DJANGO:
        yield f"import {OF_DJANGO.partition(':')[0]}  # noqa: F401 - it sets Django up, by DJANGO_SETTINGS_MODULE"
    yield f"from {worker.__module__} import {name}"
    for finding in report.findings:
        word = re.sub(r"\W+", "_", finding.fault_class).strip("_")
        yield ""
        yield ""
        yield f"def test_{_snake(name)}_{word}(lowkiq):"
        yield from (f"    # {line.strip()}" for line in finding.story)
        yield f"    lowkiq.fuzz({name}, plan={finding.plan!r})"
    yield ""


def _snake(name: str) -> str:
    return re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower()
