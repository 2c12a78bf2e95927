"""A bill that somebody has exported from AWS Cost Explorer, grouped by service: read, and compared with an estimate."""

import csv
import math
from collections.abc import Iterator, Mapping
from datetime import date
from pathlib import Path
from typing import Final

import msgspec

from lowkiq_lambda.stack.costs.month import HOURS

_SERVICES: Final[dict[str, tuple[str, ...]]] = {
    "Lambda": ("Lambda, requests", "Lambda, time"),
    "EventBridge": ("EventBridge Scheduler",),
    "CloudWatch": ("Logs", "Metrics and alarms"),
    "Elastic Container Service": ("Fargate",),
    "Fargate": ("Fargate",),
    "VPC": ("Public IPv4 address", "Way out of the VPC"),
    "Virtual Private Cloud": ("Public IPv4 address", "Way out of the VPC"),
    "API Gateway": ("API Gateway, for the dashboard",),
}
"""Rows of an estimate by a part of the service's name."""
_TOTALS: Final = ("service total", "total costs", "total", "totals")
_UNITS: Final = ("($)", "(usd)")
_HEAD: Final = (
    'expected the first line "Service,Lambda($),…", as Cost Explorer writes it when costs are grouped by service'
)


class BadBill(ValueError):
    """A file that is not such a bill; the message has the line."""


class Compared(msgspec.Struct, frozen=True, kw_only=True):
    """A service: dollars by the bill and by the estimate, of the same days; `error`: of the estimate, as a share."""

    service: str
    billed: float
    estimated: float

    @property
    def error(self) -> float | None:
        """How far off the estimate is; None where nothing was billed."""
        return (self.estimated - self.billed) / self.billed if self.billed else None


class ServiceBill(msgspec.Struct, frozen=True):
    """Dollars by service, of so many days; 0: the file says of no day, and a month is taken."""

    services: dict[str, float]
    days: int


def read_bill(path: Path) -> ServiceBill:
    """The sums of the file. Raises BadBill."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeError) as error:
        raise BadBill(f"{path}: it cannot be read: {getattr(error, 'strerror', 'not UTF-8')}") from error
    rows = [(number, row) for number, row in enumerate(_rows(path, text), 1) if any(map(str.strip, row))]
    if not rows or rows[0][1][0].strip().casefold() != "service" or not rows[0][1][1:]:
        raise BadBill(f"{path}, line 1: {_HEAD}")
    names = [_service(cell) for cell in rows[0][1]]
    sums = dict.fromkeys(names[1:], 0.0)
    days, whole = set[date](), dict[str, float]()
    for number, row in rows[1:]:
        if len(row) != len(names):
            raise BadBill(f"{path}, line {number}: {len(row)} columns, and the first line has {len(names)}")
        amounts = {name: _amount(path, number, cell) for name, cell in zip(names[1:], row[1:], strict=True)}
        if row[0].strip().casefold() in _TOTALS:
            whole = amounts
            continue
        days.add(_day(path, number, row[0]))
        sums = {name: sums[name] + amounts[name] for name in sums}
    if not days and not whole:
        raise BadBill(f"{path}: there is no row of costs behind the first line")
    services = {name: value for name, value in (sums if days else whole).items() if name.casefold() not in _TOTALS}
    return ServiceBill(services, len(days))


def compared(bill: ServiceBill, rows: Mapping[str, float]) -> Iterator[Compared]:
    """Each service of which there is an estimate, a month's `rows`; and the sum of these."""
    share = bill.days * 24 / HOURS if bill.days else 1.0
    each = list[Compared]()
    for name, billed in bill.services.items():
        own = next((rows_of for part, rows_of in _SERVICES.items() if part.casefold() in name.casefold()), None)
        if own is not None:
            estimated = sum(rows.get(row, 0.0) for row in own) * share
            each.append(Compared(service=name, billed=billed, estimated=estimated))
    yield from each
    yield Compared(
        service="all of these", billed=sum(one.billed for one in each), estimated=sum(one.estimated for one in each)
    )


def _rows(path: Path, text: str) -> Iterator[list[str]]:
    reader = csv.reader(text.splitlines(), strict=True)
    try:
        yield from reader
    except csv.Error as error:
        raise BadBill(f"{path}, line {reader.line_num}: {error}") from error


def _service(cell: str) -> str:
    name = cell.strip()
    for unit in _UNITS:
        name = name[: -len(unit)].strip() if name.casefold().endswith(unit) else name
    return name


def _amount(path: Path, number: int, cell: str) -> float:
    try:
        value = float(cell.strip().replace("$", "").replace(",", "") or 0.0)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise BadBill(f"{path}, line {number}: {cell[:40]!r} is not a number of dollars")
    return value


def _day(path: Path, number: int, cell: str) -> date:
    try:
        return date.fromisoformat(cell.strip()[:10])
    except ValueError as error:
        raise BadBill(f"{path}, line {number}: {cell[:40]!r} is not a day, such as 2026-10-31") from error
