"""The machine with somebody beside the holders who starts drains, and gives some of them up."""

from hypothesis import strategies as st

from lowkiq_lambda.store.shard.waking import Woken, unwake, wake
from tests.properties.disturbing import disturbance
from tests.properties.machine import StoreMachine
from tests.properties.model import MISJUDGED
from tests.properties.store import RETRY_FOR


class WokenMachine(StoreMachine):
    """Asks, now and then, whether a drain is to be started: yes, if one is needed and nobody else was told so."""

    noted: tuple[float, int] | None = None
    last: Woken | None = None

    @disturbance(window=st.sampled_from([1.0, 30.0]))
    def wake(self, window: float) -> None:
        """Somebody wants to start a drain."""
        needed = self.needs_a_drain()
        woken = wake(self.shard.backend, [self.shard.ref], window, RETRY_FOR)
        assert {} == woken.errors
        assert ([self.shard.ref] if needed else []) == woken.shards
        if needed:
            self.noted, self.last = (self.model.now + window, self.model.token), woken

    @disturbance(lambda self: self.last)
    def give_up(self) -> None:
        """The drain could not be started; perhaps that is told twice."""
        if self.last:
            assert {} == unwake(self.shard.backend, self.last.nonce, [self.shard.ref], RETRY_FOR)
            self.noted = None

    def needs_a_drain(self) -> bool:
        """Whether there is work for somebody, and nobody has the shard or is about to take it."""
        model = self.model
        beyond = model.until > model.now + model.ttl + MISJUDGED
        if (model.lease_key or model.now < model.until) and not beyond:
            return False
        if model.now < model.paused_until:
            return False
        told = self.noted is not None and model.now < self.noted[0] and model.token == self.noted[1]
        return not told and (bool(model.flight) or model.is_due())
