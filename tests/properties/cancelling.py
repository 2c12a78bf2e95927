"""The machine with an operator who cancels single ids, in any state: what becomes of them stands in the model."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, ClassVar, Literal, NamedTuple

import msgspec
from hypothesis import strategies as st
from hypothesis.stateful import invariant, rule

from lowkiq_lambda.operate.acts.action_scripts import ShardSnapshot
from lowkiq_lambda.store.shard.keys import REQUESTS
from lowkiq_lambda.store.shard.session import Next
from tests.properties.disturbing import disturbance
from tests.properties.machine import DUE_JOBS, WIDE_LIMITS, Job
from tests.properties.model import Flown, OutcomeRecord
from tests.properties.operated import SEVERAL, OperatedMachine
from tests.properties.operators import OperatedModel

CANCELLED = "cancelled by an operator"
_BEFORE_OUTCOMES = frozenset({"saved", "noted", "ended", "some_expired"})


class Cancel(NamedTuple):
    """Payloads in flight up to that arrival number are to go, to the morgue if there is an error."""

    upto: int
    error: str | None


class CancellingModel(OperatedModel):
    """A shard whose ids may be cancelled."""

    def __init__(self, **fields: Any) -> None:
        super().__init__(**fields)
        self.cancels: dict[str, Cancel] = {}
        self.honoured = 0

    def cancel(self, look: ShardSnapshot, ids: list[str], *, kill: bool) -> dict[str, list[str]]:
        """What waits goes at once; of what is in flight the holder is asked. The ids, by what became of them."""
        answer: dict[str, list[str]] = {"at_once": [], "in_flight": [], "gone": []}
        error = CANCELLED if kill else None
        for id_ in ids:
            gone = self._withdraw(look, id_, self._killing(id_, CANCELLED) if kill else lambda _entry: None)
            if id_ in self.flight:
                before = self.cancels.get(id_, Cancel(0, None))
                self.cancels[id_] = Cancel(max(look.arrival, before.upto), error)
            self.counters["cancelled"] += gone and id_ not in self.flight
            answer["in_flight" if id_ in self.flight else "at_once" if gone else "gone"].append(id_)
        self.to_trim = True
        self._trim()
        self.forget_failures()
        return answer

    def asked_of_holder(self) -> dict[str, Literal["cancel"]]:
        """To end what was cancelled."""
        return dict.fromkeys(self.cancels, "cancel")

    def settle(self, call: int, outcomes: Sequence[OutcomeRecord], *, partial: bool = False) -> None:
        """A run that ends well is done; any other end of a cancelled id is the end of its payloads."""
        left: list[OutcomeRecord] = []
        for outcome in outcomes:
            id_, kind = outcome[:2]
            if kind not in _BEFORE_OUTCOMES and kind != "done" and id_ in self.cancels:
                outcome = (id_, "honoured")  # noqa: PLW2901 - in its place
            left.append(outcome)
        super().settle(call, left, partial=partial)
        self.cancels = {id_: cancel for id_, cancel in self.cancels.items() if id_ in self.flight}

    def _recover(self, former: object) -> None:
        for id_ in [id_ for id_ in self.flight if id_ in self.cancels]:
            self.counters["recovered"] += 1
            self._honoured(id_, self.flight.pop(id_))
        super()._recover(former)
        self.cancels = {}

    def _honoured(self, id_: str, flown: Flown) -> None:
        upto, error = self.cancels.pop(id_)
        self.honoured += 1
        self.counters["cancelled"] += 1
        gone = [entry for entry in flown.entries if entry.arrival <= upto]
        left = [entry for entry in flown.entries if entry.arrival > upto]
        if error is not None and gone:
            if left:
                self.progress.pop(id_, None)
            self._kill_progress(id_, flown)
            for entry in gone:
                self._to_morgue(id_, entry, error)
        self.progress.pop(id_, None)
        self._forget_counts(flown.entries)
        self.groups.pop(self.trouble.pop(id_, {}).get("group", ""), None)
        self._drop_suspect(id_)
        if left:
            self._put_back(id_, left, self.now)
        job = self.waiting.get(id_)
        if job is None or self.retry_count(job) < 0:
            self.errors.pop(id_, None)


class CancellingMachine(OperatedMachine):
    """With an operator who cancels ids."""

    model: CancellingModel
    honoured: ClassVar[Counter[bool]] = Counter()
    """How many requests were made, and honoured: False and True."""

    def new_model(self, **fields: Any) -> CancellingModel:
        """One that knows of cancels."""
        return CancellingModel(**fields)

    @invariant()
    def store_is_as_the_model(self) -> None:
        """So are the requests that are kept."""
        super().store_is_as_the_model()
        kept: Any = self.server.admin.hgetall(self.shard.ref.using((REQUESTS,)).key(REQUESTS))
        asked = {id_.decode(): msgspec.msgpack.decode(packed)["c"] for id_, packed in kept.items()}
        assert self.model.cancels == {id_: Cancel(one["upto"], one.get("error")) for id_, one in asked.items()}

    @disturbance(ids=SEVERAL, kill=st.booleans(), late=st.booleans())
    def cancel(self, ids: list[str], *, kill: bool, late: bool) -> None:
        """Stop ids for good, as of now or of the look that was taken."""
        if not (late and self.seen):
            self.look()
        look = self.look_taken()
        with_requests = replace(look, shard=look.shard.using((REQUESTS,)))
        answer = self.shard.operator(with_requests).cancel(ids, kill=kill)
        expected = self.model.cancel(look, ids, kill=kill)
        self.honoured[False] += len(expected["in_flight"])
        assert expected == {name: getattr(answer, name) for name in expected}

    @rule(data=st.data(), jobs=DUE_JOBS, kill=st.booleans(), step=st.sampled_from(["die", "claim", "more", "part"]))
    def cancel_flown(self, data: st.DataObject, jobs: list[Job], step: Next | Literal["die"], *, kill: bool) -> None:
        """Ids are cancelled while they run, and more of them is pushed; then their holder goes on, or dies."""
        if not self.has_claim():
            self.push(jobs)
            self.make_free()
            self.acquire(data.draw(WIDE_LIMITS, label="limits"), twice=False)
        if not (self.has_claim() and self.model.flight):
            return
        ids = data.draw(st.lists(st.sampled_from(sorted(self.model.flight)), min_size=1, unique=True), label="ids")
        self.cancel(ids, kill=kill, late=False)
        self.store_is_as_the_model()
        if data.draw(st.booleans(), label="push"):
            self.push(jobs)
        if step == "die":
            self.lose_and_acquire(data.draw(WIDE_LIMITS, label="limits"))
        else:
            self.settle(data, step, data.draw(WIDE_LIMITS, label="limits"))

    def teardown(self) -> None:
        """How often it mattered."""
        self.honoured[True] += self.model.honoured
        super().teardown()
