"""What a shard of tenants is meant to do: ids are claimed in the fair order of their lanes."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tests.kit.stored import Entry
from tests.properties.model import Flown, Job
from tests.properties.operators import OperatedModel


def lane_of(id_: str) -> str:
    """What stands before the first colon."""
    return id_.split(":", 1)[0] if ":" in id_ else ""


@dataclass
class LaneModel(OperatedModel):
    """A shard whose ids are claimed in the fair order of their lanes."""

    served_from: dict[str, float] = field(default_factory=dict)
    served_at: dict[str, float] = field(default_factory=dict)

    def is_due(self) -> bool:
        """Whether a lane may be served."""
        return any(time <= self.due_by for time in self.served_from.values())

    def next_ids(self, most: int, besides: Collection[str] = ()) -> list[str]:
        """Of each lane that may be served an equal share, then more from the first lane on."""
        ready = [lane for lane, time in self.served_from.items() if time <= self.due_by]
        listed = sorted(ready, key=lambda lane: (self.served_from[lane], lane.encode()))[: most + len(besides)]
        due_times = self._due(besides)
        due = {lane: [id_ for id_ in self._line(lane) if id_ in due_times] for lane in listed}
        picked: list[str] = []
        for share in (max(1, most // max(1, len(listed))), most):
            for lane in listed:
                room = min(share, most - len(picked))
                picked += due[lane][:room]
                del due[lane][:room]
        return picked

    def next_due(self, besides: Collection[str]) -> float | None:
        """The later of an id's time and when its lane is served."""
        times = [
            max(job.due_at, self.served_from[lane_of(id_)]) for id_, job in self.waiting.items() if id_ not in besides
        ]
        return min(times, default=None)

    def served(self, ids: Iterable[str]) -> None:
        """Their lanes come behind all others."""
        for lane in {lane_of(id_) for id_ in ids}:
            self.served_at[lane] = self.due_by
            self._set_served_from(lane)

    def take_times(self, times: Mapping[str, float], made_due: Iterable[str]) -> None:
        """Their lanes are served at other times."""
        before = {id_: job.due_at for id_, job in self.waiting.items()}
        super().take_times(times, [*made_due])
        for id_, job in self.waiting.items():
            if job.due_at != before[id_]:
                self._set_served_from(lane_of(id_))

    def _put(self, id_: str, entries: Iterable[Entry], due_at: float) -> Job:
        is_new = id_ not in self.waiting
        job = super()._put(id_, entries, due_at)
        if is_new:
            self._set_served_from(lane_of(id_))
        return job

    def _put_back(self, id_: str, entries: Iterable[Entry], due_at: float) -> None:
        super()._put_back(id_, entries, due_at)
        self._set_served_from(lane_of(id_))

    def _returned(self, id_: str, flown: Flown, exit_count: int | None = None) -> None:
        super()._returned(id_, flown, exit_count)
        self._set_served_from(lane_of(id_))

    def _forget(self, id_: str) -> None:
        super()._forget(id_)
        self._set_served_from(lane_of(id_))

    def _anew(self, id_: str, job: Job) -> None:
        super()._anew(id_, job)
        self._set_served_from(lane_of(id_))

    def _line(self, lane: str) -> list[str]:
        ids = [id_ for id_ in self.waiting if lane_of(id_) == lane]
        return sorted(ids, key=lambda id_: (self.waiting[id_].due_at, id_.encode()))

    def _set_served_from(self, lane: str) -> None:
        line = self._line(lane)
        if line:
            first = self.waiting[line[0]].due_at
            self.served_from[lane] = max(first, min(self.due_by, self.served_at.get(lane, 0.0)))
        else:
            self.served_from.pop(lane, None)
            self.served_at.pop(lane, None)


def stored_lanes(client: Any, keys: Sequence[str]) -> tuple[set[str], dict[str, float], set[str]]:
    """The ids in lines, when lanes are served, and the lanes of which something is remembered, by these keys."""
    lines, lanes, served = keys
    ids = set()
    for member in client.zrange(lines, 0, -1):
        size = int.from_bytes(member[:4])
        lane, id_ = member[4 : 4 + size].decode(), member[12 + size :].decode()
        assert lane == lane_of(id_)
        ids.add(id_)
    served_from = {lane.decode(): time for lane, time in client.zrange(lanes, 0, -1, withscores=True)}
    return ids, served_from, {lane.decode() for lane in client.hkeys(served)}
