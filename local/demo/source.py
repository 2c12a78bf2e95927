"""Which history is replayed: the repository that was named, else the checkout it stands in, else our own."""

import gzip
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path

import msgspec

from local.demo.history import Change, History, HistoryError
from local.demo.repository import read_repository

DEFAULT_LIMIT = 10_000
"""How many changes of a long history are replayed; the latest."""


class _Heading(msgspec.Struct):
    """The first line of the history that ships with the demo."""

    origin: str
    commit: str
    final: dict[str, str]


def choose_history(repository: Path | None, limit: int | None = DEFAULT_LIMIT) -> History:
    """The history of `repository`; None takes the checkout around the current folder, else the bundled one.

    `limit` bounds the changes that are read from a repository, None reads all. Raises `HistoryError` where
    the repository that was named cannot be read.
    """
    if repository is not None:
        return read_repository(repository, limit)
    try:
        return read_repository(Path.cwd(), limit)
    except HistoryError as error:
        return bundled_history(why=str(error))


def bundled_history(why: str = "") -> History:
    """The small history that ships with the demo; `why` it was taken is told with its origin."""
    packed = files(__package__).joinpath("history.jsonl.gz").read_bytes()
    heading, *changes = gzip.decompress(packed).splitlines()
    about = msgspec.json.decode(heading, type=_Heading)
    taken = f"a bundled part of {about.origin}"
    return History(
        origin=f"{taken}, as {why}" if why else taken,
        commit=about.commit,
        changes=list(_read(changes)),
        final=about.final,
    )


def _read(lines: list[bytes]) -> Iterator[Change]:
    decoder = msgspec.json.Decoder(Change)
    return map(decoder.decode, lines)
