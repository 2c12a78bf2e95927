"""Tables of markdown."""

from collections.abc import Iterable, Sequence


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """The lines of a table."""
    return "\n".join(_line(cells) for cells in (head, ["---"] * len(head), *rows))


def code(text: str) -> str:
    """As code; nothing where there is no text."""
    return f"`{text}`" if text else ""


def _line(cells: Sequence[str]) -> str:
    escaped = (cell.replace("|", "\\|") for cell in cells)
    return "".join(f"| {cell} " if cell else "| " for cell in escaped) + "|"
