"""The record of alerts: which needs have been announced, and which messages nobody has taken yet.

It is one key of the app. A writer replaces it only if it is still the one that was read, so of two processes that look
at the same time one announces.
"""

from collections.abc import Iterable, Sequence
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Final, Literal, cast
from uuid import uuid4

import msgspec

from lowkiq_lambda.operate.doctor.findings import Need

if TYPE_CHECKING:
    from lowkiq_lambda.store.shard.backend import Backend

KEPT_FOR: Final = 30 * 86_400
"""Seconds for which the record outlives the last change of it."""
OUR_OWN: Final = ("duties", "alerts")
"""What this duty itself may need, by check and by what it is about: a message of it could not come."""
UNSEEN_FOR: Final = 86_400.0
"""Seconds after which a need of a queue ends that this app does not have: another release of it may have."""
MOST_MESSAGES: Final = 500
"""So many messages wait at most; the oldest give way."""
_FIRST_WAIT: Final = 20.0
_LONGEST_WAIT: Final = 900.0
_MOST_DOUBLINGS: Final = 6
_SWAP: Final = """
if (redis.call('GET', KEYS[1]) or '') == ARGV[1] then redis.call('SET', KEYS[1], ARGV[2], 'EX', ARGV[3]) end
return redis.call('GET', KEYS[1]) or ''
"""


class Announced(msgspec.Struct):
    """A need that was announced. `queue`: the one that it is about, or empty. Times are Unix seconds.

    `missed_at`: when a look did not find it any more; None if the last look did.
    """

    check: str
    about: str
    mark: str
    says: str
    queue: str
    began_at: float
    missed_at: float | None = None


class Unsent(msgspec.Struct):
    """A message that nobody has taken yet. `next_at`: when it is tried (again). `key`: the same at each try."""

    key: str
    event: Literal["begins", "ends"]
    at: float
    fields: dict[str, Any]
    tries: int = 0
    next_at: float = 0.0

    def put_off(self, now: float) -> None:
        """Note a try that begins now: it is repeated later, unless somebody says that it went well."""
        self.next_at = now + min(_LONGEST_WAIT, _FIRST_WAIT * 2 ** min(self.tries, _MOST_DOUBLINGS))
        self.tries += 1


class AlertRecord(msgspec.Struct):
    """All of it. `version` is random, so that no two records are equal."""

    version: str = ""
    announced: list[Announced] = []
    waiting: list[Unsent] = []

    def note(self, needs: Iterable[Need], queues: Sequence[str], now: float) -> tuple[bool, list[Unsent]]:
        """Compare with what a look has found; whether the record differs now, and which messages gave way.

        A need ends if two looks in a row do not find it: one may have been refused an answer.
        """
        current = {(need.check, need.about): need for need in reversed([*needs])}
        current.pop(OUR_OWN, None)
        differs = False
        for entry in self.announced[:]:
            need = current.pop((entry.check, entry.about), None)
            if need is not None:
                differs = differs or entry.missed_at is not None
                entry.missed_at = None
            elif entry.missed_at is None:
                entry.missed_at, differs = now, True
            elif not entry.queue or entry.queue in queues or now - entry.missed_at > UNSEEN_FOR:
                self.announced.remove(entry)
                self._add("ends", entry, now, {"ended_at": now})
                differs = True
        # The worst first: a look lists them so.
        for need in reversed(current.values()):
            entry = Announced(need.check, need.about, need.mark, need.says, need.act.query.get("queue", ""), now)
            self.announced.append(entry)
            self._add("begins", entry, now, {"advice": need.advice, "command": need.act.command})
            differs = True
        dropped = self.waiting[:-MOST_MESSAGES]
        self.waiting = self.waiting[-MOST_MESSAGES:]
        return differs, dropped

    def due(self, now: float) -> Unsent | None:
        """The message that is to be tried now. One that ends a need waits for the one that began it."""
        blocked: set[tuple[str, str]] = set()
        for message in self.waiting:
            need = message.fields["check"], message.fields["about"]
            if message.next_at <= now and need not in blocked:
                return message
            blocked.add(need)
        return None

    def _add(self, event: Literal["begins", "ends"], entry: Announced, now: float, more: dict[str, Any]) -> None:
        fields = {
            "check": entry.check,
            "about": entry.about,
            "queue": entry.queue,
            "mark": entry.mark,
            "says": entry.says,
            "began_at": entry.began_at,
            **more,
        }
        digest = sha256(f"{entry.check}\0{entry.about}\0{entry.began_at!r}\0{event}".encode()).hexdigest()
        self.waiting.append(Unsent(digest[:32], event, now, fields))


class AlertStore:
    """The record in Redis: of the app's namespace, and of the place that its messages go to."""

    def __init__(self, backend: "Backend", destination: str, retry_for: float) -> None:
        self._backend, self._retry_for = backend, retry_for
        self._key = f"{backend.prefix}:alerts:{sha256(destination.encode()).hexdigest()[:16]}"
        self._text: bytes = b""

    def read(self) -> AlertRecord:
        """The record; a new one if there is none that can be read. Raises BackendError."""
        backend = self._backend
        stored = cast("bytes | None", backend.retrying(self._retry_for, lambda: backend.client.get(self._key)))
        self._text = stored or b""
        try:
            return msgspec.json.decode(self._text, type=AlertRecord) if self._text else AlertRecord()
        except msgspec.MsgspecError:
            return AlertRecord()

    def write(self, record: AlertRecord) -> bool:
        """Replace the record that was read last; false if another process has. Raises BackendError."""
        backend, record.version = self._backend, uuid4().hex
        text = msgspec.json.encode(record)
        # A repeat after a lost reply finds the new record in place.
        stored = backend.retrying(
            self._retry_for, lambda: backend.client.eval(_SWAP, 1, self._key, self._text, text, KEPT_FOR)
        )
        if stored != text:
            return False
        self._text = text
        return True
