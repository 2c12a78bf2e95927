"""The two other sides as the jobs see them; what the ERP refuses becomes what a queue understands."""

import os
from typing import Any, Final

from examples.erp_sync.http import Answer, ask
from lowkiq_lambda import Later, Rejected

TOO_OLD: Final = 409
REFUSED: Final = 422
THROTTLED: Final = 429
BROKEN: Final = 500


class ErpError(Exception):
    """The ERP did not do what it was asked, and may do so later."""


def tell_erp(method: str, path: str, body: object = None) -> Any:  # noqa: ANN401 - any JSON
    """What the ERP answers.

    Raises Later where it has too much to do, Rejected where it refuses what it was told, and ErpError or Unreachable
    where a retry may help. That it knows a newer version is no error: what was to be told is told.
    """
    answer = ask(method, os.environ["ERP_URL"] + path, body)
    if answer.status == THROTTLED:
        raise Later(float(answer.headers["retry-after"]), "the ERP throttles us")
    if answer.status == REFUSED:
        raise Rejected(_reason(answer))
    if answer.status >= BROKEN:
        raise ErpError(f"{method} {path}: {answer.status}, {_reason(answer)}")
    return answer.body


def ask_shop(path: str) -> Any:  # noqa: ANN401 - any JSON
    """What the shop answers. Raises Unreachable."""
    return ask("GET", os.environ["SHOP_URL"] + path).body


def _reason(answer: Answer) -> str:
    return str(answer.body["reason"]) if isinstance(answer.body, dict) else str(answer.body)
