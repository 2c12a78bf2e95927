"""Looks side by side: what they ask at one moment goes to a server in one round trip.

A page looks at several things, each with calls of its own. Each look runs in a thread, and its calls come here in place
of the connections, until each look waits for an answer. So a page takes as many round trips as its longest look.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from threading import Condition, Event, Thread
from typing import Any, Final, Generic, ParamSpec, Self, TypeVar

from redis.exceptions import ConnectionError as RedisConnectionError

from lowkiq_lambda.store.server.pipelines import Command, gathered, send_each

Result = TypeVar("Result")
Result_co = TypeVar("Result_co", covariant=True)
Params = ParamSpec("Params")

PATIENCE: Final = 1.0
"""Seconds after which calls are sent without those of the other looks, as a look may wait for another one's lock."""

AT_ONCE: Final = 100
"""Looks of one kind, each of which has a thread."""


class SideLook(Generic[Result_co]):
    """One of them."""

    def __init__(self, call: Callable[[], Result_co]) -> None:
        self._call = call
        self._result: Result_co | None = None
        self._error: BaseException | None = None

    def run(self) -> None:
        """Look, in a thread of its own."""
        try:
            self._result = self._call()
        except BaseException as error:  # noqa: BLE001 - raised again where the result is taken
            self._error = error

    @property
    def result(self) -> Result_co:
        """Its result, once all have ended. Raises its error."""
        if self._error is not None:
            raise self._error
        return self._result  # type: ignore[return-value]  # a look of None has it too


class Together:
    """Looks that begin at the end of the block, and have ended behind it."""

    def __init__(self) -> None:
        self._looks: list[SideLook[Any]] = []

    def look(self, call: Callable[Params, Result], *args: Params.args, **options: Params.kwargs) -> SideLook[Result]:
        """Have it run beside the others. It only reads, and takes no lock in which it asks the server."""
        look = SideLook(lambda: call(*args, **options))
        self._looks.append(look)
        return look

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        if kind is not None:
            return
        if len(self._looks) == 1:
            self._looks[0].run()
        elif self._looks:
            _Gathering(len(self._looks)).run(self._looks)


def side_by_side(calls: Iterable[Callable[[], Result]]) -> Iterator[SideLook[Result]]:
    """Looks of one kind that have ended, however many, in their order: so many at a time."""
    coming = iter(calls)
    while some := [*islice(coming, AT_ONCE)]:
        with Together() as side:
            looks = [side.look(call) for call in some]
        yield from looks


class _Call:
    """The commands of one call."""

    def __init__(self, client: Any, commands: Sequence[tuple[str, Command]]) -> None:  # noqa: ANN401 - any client
        self.client = client
        self.commands = commands
        self.answers: list[Any] = [RedisConnectionError("Nobody waits for the answer any more.")] * len(commands)
        self.is_answered = Event()


class _Gathering:
    """Sends what so many looks ask."""

    def __init__(self, looks: int) -> None:
        self._running = looks
        self._waiting: list[_Call] = []
        self._none_runs = Condition()
        self._is_over = False

    def run(self, looks: Sequence[SideLook[Any]]) -> None:
        """Run them to their ends."""
        threads = [Thread(target=self._run, args=(look,), daemon=True) for look in looks]
        calls: list[_Call] = []
        try:
            for thread in threads:
                thread.start()
            while calls := self._gather():
                for client in {id(one.client): one.client for one in calls}.values():
                    _send([one for one in calls if one.client is client])
                self._go_on(calls)
        finally:
            with self._none_runs:
                self._is_over = True
            self._go_on([*calls, *self._waiting])
        for thread in threads:
            thread.join()

    def send_each(self, client: Any, commands: Sequence[tuple[str, Command]]) -> list[Any]:  # noqa: ANN401 - as above
        """As that of pipelines, for a look."""
        call = _Call(client, commands)
        with self._none_runs:
            if self._is_over:
                return call.answers
            self._waiting.append(call)
            self._one_less()
        call.is_answered.wait()
        return call.answers

    def _go_on(self, calls: Sequence[_Call]) -> None:
        with self._none_runs:
            self._running += len(calls)
        for one in calls:
            one.is_answered.set()

    def _run(self, look: SideLook[Any]) -> None:
        gathered.send_each = self.send_each
        look.run()
        with self._none_runs:
            self._one_less()

    def _one_less(self) -> None:
        self._running -= 1
        if not self._running:
            self._none_runs.notify()

    def _gather(self) -> list[_Call]:
        """What the looks ask, once each of them waits; none if all have ended."""
        with self._none_runs:
            while self._running:
                if not self._none_runs.wait(PATIENCE) and self._waiting:
                    break
            calls, self._waiting = self._waiting, []
            return calls


def _send(calls: Sequence[_Call]) -> None:
    answers = iter(send_each(calls[0].client, [command for one in calls for command in one.commands]))
    for one in calls:
        one.answers = [next(answers) for _ in one.commands]
