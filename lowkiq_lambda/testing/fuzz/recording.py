"""Pushes of production as input: a file of JSON lines that `lowkiq record` has written, and scenarios drawn from it."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from random import Random
from typing import Any, Final

import msgspec

from lowkiq_lambda.base.errors import ConfigError
from lowkiq_lambda.settings.project import app_folder
from lowkiq_lambda.testing.fuzz.plan import DrainStep, PushStep, Step

PREFIX: Final = "recorded:"
"""Before the name of a file, in pyproject.toml."""
_MOST_PUSHES: Final = 5
"""Of a scenario."""
_PAUSE: Final = 1.0
"""Seconds between two pushes in which a drain had the time to perform the first."""


class RecordedPush(msgspec.Struct, forbid_unknown_fields=True):
    """A line of the file. `after`: seconds since the push of the line before."""

    id: str
    payload: Any
    score: float
    after: float = 0.0


class RecordedPushes:
    """The pushes of a file, in their order."""

    def __init__(self, pushes: Sequence[RecordedPush]) -> None:
        self._pushes = [*pushes]
        texts = [msgspec.json.encode(push.payload, order="deterministic") for push in pushes]
        shortest = sorted({*texts}, key=lambda text: (len(text), text))
        self.payloads: list[Any] = [*map(msgspec.json.decode, shortest)]
        """Each payload once, the shortest first."""
        positions = {text: position for position, text in enumerate(shortest)}
        self._numbers = [positions[text] for text in texts]
        self.ids = [*dict.fromkeys(push.id for push in pushes)]

    def steps(self, rng: Random, most_ids: int) -> Iterator[Step]:
        """Pushes that followed each other, of a few ids, with a drain in each pause and behind the last."""
        first = rng.randrange(len(self._pushes))
        ids, pushes, seconds = set[str](), 0, 0.0
        most = rng.randint(1, _MOST_PUSHES)
        for push, number in zip(self._pushes[first:], self._numbers[first:], strict=True):
            seconds += push.after
            if push.id not in ids and len(ids) == most_ids:
                continue
            if pushes and seconds >= _PAUSE:
                yield DrainStep()
            yield PushStep(push.id, number, push.score)
            ids.add(push.id)
            pushes, seconds = pushes + 1, 0.0
            if pushes == most:
                break
        yield DrainStep()


def recorded(path: str | Path) -> RecordedPushes:
    """The pushes that `lowkiq record` has written to this file, as `payloads` of a fuzz. Raises ConfigError."""
    try:
        lines = Path(path).read_bytes().splitlines()
    except OSError as error:
        raise ConfigError(f"The recording cannot be read from {path}: {error.strerror}.") from error
    pushes = [_push(path, number, line) for number, line in enumerate(lines, 1) if line.strip()]
    if not pushes:
        raise ConfigError(f"The recording {path} is empty.")
    return RecordedPushes(pushes)


def recorded_of_project(name: str) -> RecordedPushes:
    """As `recorded`, for `recorded:FILE` in a pyproject.toml, whose folder the file's name begins at."""
    return recorded((app_folder() or Path()) / name.removeprefix(PREFIX))


def _push(path: str | Path, number: int, line: bytes) -> RecordedPush:
    try:
        return msgspec.json.decode(line, type=RecordedPush)
    except msgspec.MsgspecError as error:
        # Its text has no values of the line.
        raise ConfigError(f"The recording {path}, line {number:,}, is not a push: {error}.") from None
