"""Numbers as the doctor says them, and from which on something is late."""

from collections.abc import Sequence
from typing import Final

_TIMES: Final = ((86_400, "days"), (3_600, "hours"), (60, "minutes"))
_SIZES: Final = ((1024**3, "GiB"), (1024**2, "MiB"), (1024, "KiB"))
_SHOWN: Final = 10


def time(seconds: float) -> str:
    """A duration, in the largest unit of which it has two."""
    size, unit = next(((size, unit) for size, unit in _TIMES if seconds >= 2 * size), (1, "s"))
    return f"{seconds / size:.0f} {unit}" if seconds >= 2 else f"{seconds:.1f} s"  # noqa: PLR2004 - below that it matters


def size(count: float) -> str:
    """Bytes."""
    unit = next(((unit, name) for unit, name in _SIZES if count >= unit), None)
    return f"{count / unit[0]:.1f} {unit[1]}" if unit else f"{count:.0f} bytes"


def several(count: int, name: str) -> str:
    """So many of what has a plural with s, or es."""
    plural = "es" if name.endswith("s") else "s"
    return f"{count:,} {name}{'' if count == 1 else plural}"


def some(names: Sequence[object]) -> str:
    """The first of them, and how many more there are."""
    more = len(names) - _SHOWN
    names_shown = ", ".join(map(str, names[:_SHOWN]))
    return f"{names_shown} and {more} more" if more > 0 else names_shown
