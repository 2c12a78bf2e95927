"""What a claim is, what one may know of a world that is judged, and what breaks a claim."""

import math

import msgspec


class Claim(msgspec.Struct, frozen=True):
    """A promise: its id, its words, the formal sentence that the check beside it evaluates, and where it ends."""

    id: str
    words: str
    sentence: str
    ends: str = ""


class Violation(msgspec.Struct, frozen=True):
    """Something that must not be: which claim is broken, for which id, at what time, and how."""

    claim: str
    id: str
    words: str
    at: float = 0.0

    def __str__(self) -> str:
        return f"{self.claim}: {self.id}: {self.words}"


class Terms(msgspec.Struct, frozen=True):
    """What is known of the world beside its history.

    `ended`: all is worked off, so that losses can be judged. `looked`: `left` has all that the morgue has then.
    `settling`: seconds within which an outcome is durable if no harm is done to its process; None if only `settled`
    tells it. `acknowledged`: of payloads that are done only `settled` tells it, and of failures the time.
    `failing`: how the ids begin whose handler always fails; `retries`: how often they are tried again. `crashes`:
    deaths that kill a payload that runs alone. `running`: the most holders at once; `rate`: the most ids that begin
    within `per` seconds; `blur`: seconds by which a handler may note its begin too late;
    infinite where somebody sets the clock by which payloads expire.
    """

    ended: bool = True
    looked: bool = False
    settling: float | None = None
    acknowledged: bool = False
    failing: str = ""
    retries: int | None = None
    crashes: int = 3
    running: float = math.inf
    rate: float = math.inf
    per: float = 0.0
    blur: float = 0.0

    def always_fails(self, job_id: str) -> bool:
        """Whether the handler of that id fails each time."""
        return bool(self.failing) and job_id.startswith(self.failing)
