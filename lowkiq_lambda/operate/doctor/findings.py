"""Findings of the doctor, each with a mark and with advice."""

from collections.abc import Iterable
from typing import Final, Literal, TypeAlias, get_args

import msgspec

Mark: TypeAlias = Literal["ok", "warning", "unknown", "broken"]
"""`warning`: it holds, and may not for long, or not for all; `unknown`: the server does not report it."""
Section: TypeAlias = Literal["server", "memory", "code", "work", "processes", "moves", "aws"]
SECTIONS: Final[tuple[Section, ...]] = get_args(Section)
_SEVERITY: Final[tuple[Mark, ...]] = ("ok", "unknown", "warning", "broken")


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that was looked at.

    `check`: its name. `about`: the node, the queue or the process, empty for all. `says`: what is so. `advice`: what to
    do; empty where there is nothing to do. `promises`: the numbers of those that depend on it.
    """

    section: Section
    check: str
    mark: Mark
    says: str
    advice: str = ""
    about: str = ""
    promises: tuple[int, ...] = ()


class Act(msgspec.Struct, frozen=True, kw_only=True):
    """What somebody can do. `command`: in a terminal; empty if there is none.

    `page`: the path of the dashboard's page that has it, with the fields `query`. `is_there`: whether all that is to be
    done can be done from that page; otherwise the advice of the finding says more.
    """

    label: str
    page: str
    query: dict[str, str] = {}
    command: str = ""
    is_there: bool = False

    @property
    def changes(self) -> bool:
        """Whether its page asks for a change, which a reader may not make."""
        return self.page.startswith("actions/")


class Need(msgspec.Struct, frozen=True, kw_only=True):
    """A finding that needs somebody, with its act. The fields are those of `Finding`."""

    check: str
    mark: Mark
    about: str
    says: str
    advice: str
    act: Act

    @property
    def queue(self) -> str:
        """The queue that it is about; of other things `about`."""
        return self.act.query.get("queue", self.about)


class PromiseView(msgspec.Struct, frozen=True, kw_only=True):
    """A promise, and whether it holds here. `checks`: the findings that speak against it."""

    number: int
    name: str
    mark: Mark
    checks: tuple[str, ...] = ()


class MemoryView(msgspec.Struct, frozen=True, kw_only=True):
    """The memory of the keys of a queue. `bytes` by kind.

    `how`: "sampled", if the server measured keys of `sampled` of its `shards`; "estimated" from the number of ids, if
    it refuses to measure.
    """

    queue: str
    how: Literal["sampled", "estimated"]
    bytes: dict[str, int]
    sampled: int
    shards: int


class CheckUp(msgspec.Struct, frozen=True, kw_only=True):
    """All that was found, and the promises by it. `mark`: the worst of all. `server`: its URL without a password.

    `needs`: what of it needs somebody, worst first.
    """

    server: str
    mark: Mark
    needs: tuple[Need, ...]
    promises: tuple[PromiseView, ...]
    findings: tuple[Finding, ...]
    memory: tuple[MemoryView, ...]


def worst(marks: Iterable[Mark]) -> Mark:
    """The worst of them; ok where there is none."""
    return max(marks, key=_SEVERITY.index, default="ok")
