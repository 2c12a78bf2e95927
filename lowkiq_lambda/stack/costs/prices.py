"""Prices by name, each with its unit, where it is from and when it was read: prices.toml, or what replaces it."""

import math
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Final, TypeAlias, get_type_hints

import msgspec
from msgspec import Meta, ValidationError

from lowkiq_lambda.settings.expected import expected

STANDARD: Final = Path(__file__).with_name("prices.toml")

NotNegative: TypeAlias = Annotated[float, Meta(ge=0)]
Positive: TypeAlias = Annotated[float, Meta(gt=0)]


class BadPrice(ValueError):
    """A price that does not exist, or that is none; the message says which."""


class Price(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`dollars` for `per` units; of them, `free` a month cost nothing in any account."""

    dollars: NotNegative
    per: Positive
    unit: str
    source: str
    read: str
    free: NotNegative = 0.0

    def __post_init__(self) -> None:
        if not all(map(math.isfinite, (self.dollars, self.per, self.free))):
            raise ValueError("Expected a finite number")

    def of(self, amount: float, *, free_tier: bool) -> float:
        """Dollars for that many units, after the free ones where there is a free tier to use."""
        return max(0.0, amount - self.free if free_tier else amount) * self.dollars / self.per


_KINDS: Final = get_type_hints(Price, include_extras=True)
_FIELD: Final = re.compile(r"at `\$\.(\w+)`$")
"""Which field an error of msgspec is about."""
Prices: TypeAlias = Mapping[str, Price]


def load(path: Path = STANDARD) -> dict[str, Price]:
    """All prices of a complete file. Raises BadPrice."""
    return _prices(_tables(path))


def changed(prices: Prices, changes: Mapping[str, object]) -> dict[str, Price]:
    """The prices with some fields of some of them replaced: `{"metrics": {"dollars": 0.33}}`. Raises BadPrice."""
    tables: dict[str, object] = {name: msgspec.to_builtins(price) for name, price in prices.items()}
    for name, change in changes.items():
        table = tables.get(name)
        if not isinstance(table, dict):
            raise BadPrice(f"There is no price {name!r}; there are {', '.join(sorted(prices))}.")
        if not isinstance(change, Mapping):
            raise BadPrice(f"The price {name!r} needs fields, such as dollars = 0.30, and not {change!r}.")
        tables[name] = {**table, **change}
    return _prices(tables)


def changed_by_file(prices: Prices, path: Path) -> dict[str, Price]:
    """The prices with those of a file that names only what differs. Raises BadPrice."""
    return changed(prices, _tables(path))


def _tables(path: Path) -> dict[str, object]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise BadPrice(f"The prices in {path} cannot be read: {error}.") from error


def _prices(tables: Mapping[str, object]) -> dict[str, Price]:
    return {name: _price(name, table) for name, table in tables.items()}


def _plain(error: ValidationError) -> str:
    field = _FIELD.search(str(error))
    return str(error) if field is None else f"{field[1]} must be {expected(_KINDS[field[1]])}"


def _price(name: str, table: object) -> Price:
    try:
        return msgspec.convert(table, Price)
    except ValidationError as error:
        raise BadPrice(f"The price {name!r} is refused: {_plain(error)}.") from error
