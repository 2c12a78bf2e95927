"""What operators may do to the shard of the model: only to what was there when they looked."""

from collections.abc import Callable, Collection, Iterable, Mapping

from lowkiq_lambda.operate.acts.action_scripts import ShardSnapshot
from tests.kit.stored import Entry
from tests.properties.model import DeadPayloads, Flown, Job, Model

TICKS = 0.001
"""Seconds: more than the order of what is made due at once may take."""


class OperatedModel(Model):
    """A shard with operators. Each action returns how many ids it changed."""

    def delete(self, look: ShardSnapshot, ids: Iterable[str]) -> int:
        """What waits under the ids."""
        return sum(self._withdraw(look, id_, lambda _entry: None) for id_ in ids)

    def delete_failed(self, look: ShardSnapshot) -> int:
        """What waits and has failed."""
        return self.delete(look, self._failed(look))

    def kill_failed(self, look: ShardSnapshot) -> int:
        """What waits and has failed goes to the morgue."""
        failed = self._failed(look)
        changed = sum(self._withdraw(look, id_, self._killing(id_, self.errors.get(id_, ""))) for id_ in failed)
        self.to_trim = bool(failed)
        self._trim()
        return changed

    def requeue(self, look: ShardSnapshot, ids: Iterable[str]) -> int:
        """From the morgue to where the payloads' scores belong, due now, with no retries used up."""
        known = {id_: self.morgue[id_].error for id_ in ids if id_ in self.morgue}
        whole = {id_: len(self.morgue[id_].entries) == 1 for id_ in known}
        progress = {id_: self.dead_progress.get(id_) for id_ in known}
        exhumed = {id_: entries for id_ in known if (entries := self._exhume(look, id_))}
        before = self.arrival
        for id_, entries in exhumed.items():
            place, came = progress[id_] or (None, "")
            self.dead_progress.pop(id_, None)
            alone = id_ not in self.waiting and id_ not in self.flight
            goes_on = whole[id_] and place == entries[0][:2] and alone
            self.arrival += goes_on or self.arrival == before
            if goes_on:
                job = self.waiting[id_] = Job([], self.now)
                job.handed, self.progress[id_] = [entries[0]._replace(arrival=self.arrival)], came
            else:
                job = self._put(id_, entries, self.now)
                job.touched = self.arrival
            self._anew(id_, job)
            self.errors.setdefault(id_, known[id_])
        return len(exhumed)

    def requeue_all(self, look: ShardSnapshot) -> int:
        """All of the morgue, what died first before the others."""
        ids = sorted(self.morgue, key=lambda id_: (self.morgue[id_].at, id_.encode()))
        return self.requeue(look, ids) if look.dead else 0

    def delete_dead(self, look: ShardSnapshot, ids: Iterable[str]) -> int:
        """What lies in the morgue under the ids."""
        return sum(bool(self._exhume(look, id_)) for id_ in ids)

    def due_later(self, look: ShardSnapshot) -> set[str]:
        """Ids that the look saw waiting for a later time."""
        return {id_ for id_, job in self.waiting.items() if look.waiting and job.due_at > self.now and _seen(look, job)}

    def take_times(self, times: Mapping[str, float], made_due: Collection[str]) -> None:
        """Ids are due at other times now."""
        for id_, job in self.waiting.items():
            job.due_at = times[id_]
            if id_ in self.suspects and id_ in made_due:
                self.suspects[id_] = times[id_]

    def pause(self, until: float) -> None:
        """Nobody takes the shard before that; 0 ends it."""
        self.paused_until = until

    def evict(self, token: int) -> bool:
        """Who holds the shard under the token writes no more; the lease ends by itself."""
        gave_up = self.holder is None and not self.evicted
        if token != self.token or self.now >= self.until or gave_up:
            return False
        self.abandoned, self.evicted, self.holder = True, True, None
        return True

    def _killing(self, id_: str, error: str) -> Callable[[Entry], None]:
        def take(entry: Entry) -> None:
            job = self.waiting[id_]
            if entry in job.handed:
                self._kill_progress(id_, Flown(list(job.handed), 0.0, -1.0))
            self._to_morgue(id_, entry, error)

        return take

    def _failed(self, look: ShardSnapshot) -> list[str]:
        return [id_ for id_, job in self.waiting.items() if self.retry_count(job) >= 0] if look.failed else []

    def _withdraw(self, look: ShardSnapshot, id_: str, take: Callable[[Entry], object]) -> bool:
        job = self.waiting.get(id_)
        if job is None or job.touched > look.arrival:
            return False
        if any(entry.arrival > look.arrival for entry in job.handed):
            return False
        old = [entry for entry in [*job.handed, *job.entries] if entry.arrival <= look.arrival]
        is_started, had_failed = bool(job.handed), self.retry_count(job) >= 0
        for entry in old:
            take(entry)
        if job.handed:
            self.progress.pop(id_, None)
        job.handed, job.entries = [], [entry for entry in job.entries if entry not in old]
        self._forget_counts(old)
        if not job.entries:
            self._forget(id_)
        elif old and (is_started or had_failed):
            if had_failed:
                self.errors.pop(id_, None)
            self._anew(id_, job)
        return bool(old)

    def _forget(self, id_: str) -> None:
        del self.waiting[id_]
        if id_ not in self.flight:
            self.errors.pop(id_, None)
            self.trouble.pop(id_, None)
            self._drop_suspect(id_)

    def _anew(self, id_: str, job: Job) -> None:
        job.due_at, job.since = self.now, None
        self._forget_counts([*job.handed, *job.entries])
        self._note(id_, blamed=None, put_off=None)
        if id_ in self.suspects:
            self.suspects[id_] = self.now

    def _exhume(self, look: ShardSnapshot, id_: str) -> list[Entry]:
        dead = self.morgue.get(id_, DeadPayloads(0.0, "", []))
        if dead.at > look.newest_death:
            return []
        old = [entry for entry in dead.entries if entry.arrival <= look.arrival]
        dead.entries = [entry for entry in dead.entries if entry not in old]
        if not dead.entries:
            self.morgue.pop(id_, None)
            self.dead_progress.pop(id_, None)
        return old


def _seen(look: ShardSnapshot, job: Job) -> bool:
    if any(entry.arrival <= look.arrival for entry in job.handed):
        return True
    touched_since = job.touched > look.arrival and len(job.entries) == 1
    return not touched_since and any(entry.arrival <= look.arrival for entry in job.entries)
