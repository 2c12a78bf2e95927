"""`app.limiter`: limits of the other side that handlers ask while they run."""

from collections.abc import Generator
from typing import TYPE_CHECKING, Any, Final, TypeVar
from uuid import uuid4

from lowkiq_lambda.base.clock import SystemClock
from lowkiq_lambda.base.errors import BackendError, DeclarationError, LimitExceeded
from lowkiq_lambda.engine.batch import Batch, running
from lowkiq_lambda.jobs.job import is_number
from lowkiq_lambda.jobs.limiting import Concurrent, Limit, check_limit, kind_of, numbers_of, with_numbers
from lowkiq_lambda.limiters.grant import Grant, Refusal, check_points
from lowkiq_lambda.store.shard.keys import escape
from lowkiq_lambda.store.shard.limiting import Asked, Granted, LimiterCalls, LimitNumbers, Refused
from lowkiq_lambda.views.limits import LimiterView

if TYPE_CHECKING:
    from lowkiq_lambda.core import Core

Result = TypeVar("Result")

LONGEST_NAME: Final = 200
"""Bytes of a name, and of a key."""
_AWAY: Final = 5.0
"""Seconds until a job asks again that could not ask."""
_WAIT_FOR_PLACE: Final = 5.0
"""Seconds for which a caller waits for a place by default: most are given back soon, and nobody is told of it."""
_AGAIN: Final = 0.1
"""Seconds until a waiting caller asks again for a place, and a waiting job whether its batch must stop."""


class Limiter:
    """One limit with a name, for each key apart. All processes of the app's server share it."""

    def __init__(self, core: "Core", name: str, limit: Limit, *, strict: bool) -> None:
        self.name: Final = name
        self.limit: Final = limit
        """As code declares it."""
        self._core = core
        self._strict = strict
        # What was set for a limit of one kind means nothing for a limit of another one under its name.
        self._set_as = f"{kind_of(limit)}:{name}"

    def acquire(self, key: str = "", points: int = 1, wait: float | None = None, *, id: str | None = None) -> Grant:
        """Take points, or a place.

        Args:
            key: what has the limit, such as an account: at most 200 bytes.
            points: how many; of a Concurrent limiter one.
            wait: for so many seconds at most, here and now; by default 5 for a place, and 0 for points. In a handler no
                longer than `batch.remaining`, and not while `batch.stopping`.
            id: of a batch the id that asks; by default the one that runs, or the first.

        Raises:
            Later: in a handler, if there is no room: the job goes on when it is its turn, and has not failed.
            LimitExceeded: elsewhere.
            BackendError: elsewhere, if Redis cannot serve; in a handler that is a Later.
            ValueError: the points are more than the limit, so they would never be granted; or an argument is invalid.

        Example:
            stripe.acquire(key=account)
        """
        answer = self._waited(_Attempt(self, key, points, id), wait)
        if isinstance(answer, Grant):
            return answer
        raise answer.later() if running_batch() else LimitExceeded(answer.reason, retry_after=answer.seconds)

    def try_acquire(self, key: str = "", points: int = 1, *, id: str | None = None) -> Grant | Refusal:
        """As `acquire`, but a refusal is returned, and is false. A refused job has its ticket all the same."""
        return self._waited(_Attempt(self, key, points, id), 0.0)

    async def aacquire(
        self, key: str = "", points: int = 1, wait: float | None = None, *, id: str | None = None
    ) -> Grant:
        """`acquire` beside the event loop."""
        import asyncio  # noqa: PLC0415 - imported lazily: cold start

        attempt = _Attempt(self, key, points, id)
        steps = attempt.steps(wait)
        while True:
            try:
                pause = await asyncio.to_thread(next, steps, None)
            except BackendError as error:
                attempt.away(error)
                pause = None
            if pause is None:
                break
            if isinstance(self._core.clock, SystemClock):
                await asyncio.sleep(pause)
            else:
                # A clock of a test stands still until it is moved.
                self._core.clock.sleep(pause)
        if isinstance(attempt.answer, Grant):
            return attempt.answer
        refusal = attempt.refusal()
        raise refusal.later() if running_batch() else LimitExceeded(refusal.reason, retry_after=refusal.seconds)

    def set(self, limit: Limit) -> None:
        """From now on this limit counts in place of the code's, in all processes within a second, until `reset`.

        Spent points stay spent. Raises DeclarationError for another kind than the code's, and BackendError.
        """
        check_limit(limit)
        if type(limit) is not type(self.limit):
            raise DeclarationError(f"The limiter {self.name!r} is a {type(self.limit).__name__}, not {limit!r}.")
        self.calls.set(self._set_as, numbers_of(limit))

    def reset(self) -> None:
        """From now on the limit of the code counts again. Raises BackendError."""
        self.calls.set(self._set_as, None)

    def explain(self, key: str = "") -> LimiterView:
        """The limit that counts, and how much of it is left for a key. Raises BackendError."""
        check_name("key", key)
        look = self.calls.change(self.name, key, self.numbers, "look", Asked(1))
        override = self.calls.set_for(self._set_as)
        return LimiterView(
            name=self.name,
            key=key,
            limit=self.limit if override is None else with_numbers(self.limit, *override),
            is_set=override is not None,
            left=look.left,
            waiting=look.waiting,
            put_off=self.calls.refusals().get(self.name, 0),
        )

    @property
    def calls(self) -> LimiterCalls:
        """The calls to Redis; private."""
        return self._core.part(_calls)

    @property
    def numbers(self) -> LimitNumbers:
        """The limit that counts now; private. Raises BackendError."""
        most, seconds = self.calls.set_for(self._set_as) or numbers_of(self.limit)
        return LimitNumbers(kind_of(self.limit), most, seconds)

    @property
    def is_strict(self) -> bool:
        """Whether free points are kept for a second for a job that was told to come."""
        return self._strict

    def _waited(self, attempt: "_Attempt", wait: float | None) -> Grant | Refusal:
        try:
            for pause in attempt.steps(wait):
                self._core.clock.sleep(pause)
        except BackendError as error:
            attempt.away(error)
        return attempt.answer if isinstance(attempt.answer, Grant) else attempt.refusal()


class _Attempt:
    """One request for points, until it is granted or its time is over."""

    def __init__(self, limiter: Limiter, key: str, points: int, job_id: str | None) -> None:
        check_name("key", key)
        check_points(points)
        most, _ = numbers_of(limiter.limit)
        if points > (1 if isinstance(limiter.limit, Concurrent) else most):
            raise ValueError(f"{points} points of {limiter.name!r} would never be granted: it is {limiter.limit!r}.")
        self.answer: Grant | Refused | None = None
        self._limiter = limiter
        self._key = key
        self._nonce = uuid4().hex[:16]
        self._batch: Batch[Any] | None = None
        claimant = ""
        if (of_queue := running_batch()) is not None:
            queue_name, self._batch = of_queue
            claimant = f"{escape(queue_name)}/{self._batch.current if job_id is None else job_id}"
        self._request = Asked(points, claimant, self._nonce)

    def steps(self, wait: float | None) -> Generator[float]:
        """Ask; yield the seconds to rest before the next step. Raises BackendError."""
        limiter, clock, batch = self._limiter, self._limiter.calls.clock, self._batch
        if wait is None:
            wait = _WAIT_FOR_PLACE if isinstance(limiter.limit, Concurrent) else 0.0
        if not is_number(wait) or wait < 0:
            raise ValueError(f"wait must be seconds from 0 on, not {wait!r}.")
        waits_outside = wait > 0 and batch is None
        request = self._request._replace(claimant=f"/{self._nonce}") if waits_outside else self._request
        until = clock.monotonic() + (wait if batch is None else min(wait, batch.remaining))
        while True:
            numbers = limiter.numbers
            answer = limiter.calls.take(limiter.name, self._key, numbers, request, strict=limiter.is_strict)
            if isinstance(answer, Granted):
                place = limiter.name, self._key
                self.answer = Grant(limiter.calls, place, numbers, request._replace(date=answer.date), answer.left)
                return
            self.answer = answer
            pause = min(answer.seconds, _AGAIN) if numbers.kind == "concurrent" else answer.seconds
            again_at = min(clock.monotonic() + pause, until)
            if again_at <= clock.monotonic():
                break
            while not (stops := batch is not None and batch.stopping) and (rest := again_at - clock.monotonic()) > 0:
                yield rest if batch is None else min(rest, _AGAIN)
            if stops:
                break
        if waits_outside:
            limiter.calls.change(limiter.name, self._key, numbers, "forget", request)

    def away(self, error: BackendError) -> None:
        """The limiter could not be asked. Raises the error outside of a job."""
        if self._batch is None:
            raise error
        self.answer = None

    def refusal(self) -> Refusal:
        """Count it, and say why."""
        limiter, answer = self._limiter, self.answer
        if not isinstance(answer, Refused):
            return Refusal(_AWAY, 0, f"the limiter {limiter.name} cannot be asked")
        limiter.calls.count_refusal(limiter.name)
        of = f"{limiter.name}/{self._key}" if self._key else limiter.name
        position = answer.ahead + 1
        return Refusal(answer.seconds, position, f"limit {of}, number {position} in line")


class Limiters:
    """The limiters that an app declares, by name."""

    def __init__(self) -> None:
        self.declared: Final[dict[str, Limiter]] = {}

    def declare(self, core: "Core", name: str, limit: Limit | None, *, strict: bool) -> Limiter:
        """The limiter of that name, for `app.limiter`. Raises DeclarationError."""
        earlier = self.declared.get(name)
        if limit is None:
            if earlier is None:
                raise DeclarationError(f"There is no limiter {name!r}: declare it with its limit.")
            return earlier
        check_limit(limit)
        try:
            check_name("The name of a limiter", name)
        except ValueError as error:
            raise DeclarationError(str(error)) from None
        if not name:
            raise DeclarationError("A limiter has a name.")
        if earlier is not None and (earlier.limit, earlier.is_strict) != (limit, strict):
            raise DeclarationError(f"The limiter {name!r} is declared already, as {earlier.limit!r}.")
        return self.declared.setdefault(name, earlier or Limiter(core, name, limit, strict=strict))


def check_name(what: str, text: object) -> None:
    """Raises ValueError if the value cannot be a key."""
    if not isinstance(text, str):
        raise ValueError(f"{what} must be a text, not {text!r}.")  # noqa: TRY004 - as all arguments here
    try:
        is_short = len(text.encode()) <= LONGEST_NAME
    except UnicodeEncodeError:
        raise ValueError(f"{what} holds a lone surrogate: {text!r}.") from None
    if not is_short:
        raise ValueError(f"{what} has more than {LONGEST_NAME} bytes.")


def running_batch() -> tuple[str, Batch[Any]] | None:
    """The batch whose handler runs in this thread or coroutine, after the name of its queue; None elsewhere."""
    of_queue = running.get()
    return None if of_queue is None or of_queue[1].is_closed else of_queue


def _calls(core: "Core") -> LimiterCalls:
    return LimiterCalls(core.backend)
