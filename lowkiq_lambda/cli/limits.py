"""`lowkiq limits`: what limits queues now, and limits that operators set."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Final

import msgspec
from cyclopts import Parameter

from lowkiq_lambda.base.address import without_password
from lowkiq_lambda.base.errors import ConfigError, DeclarationError
from lowkiq_lambda.cli.codes import DONE, NOT_APPLIED
from lowkiq_lambda.cli.noting import note
from lowkiq_lambda.cli.output import paint, remark_skipped, say, write_json
from lowkiq_lambda.cli.parts import command_app, flag
from lowkiq_lambda.cli.queues import ActOptions, OneQueue, app_of, worker_of
from lowkiq_lambda.declare.worker import Worker
from lowkiq_lambda.jobs.limiting import Concurrent, Limit, numbers_of, with_numbers
from lowkiq_lambda.jobs.rate import Rate
from lowkiq_lambda.operate.presentation.formatting import ago, duration, exact, visible
from lowkiq_lambda.operate.presentation.limit_words import change_words, rate_words
from lowkiq_lambda.operate.presentation.limits import (
    LimiterResponse,
    LimitsResponse,
    RateResponse,
    limiter_response,
    limits_response,
)
from lowkiq_lambda.operate.presentation.moments import seconds_of

if TYPE_CHECKING:
    from lowkiq_lambda.app import Lowkiq
    from lowkiq_lambda.limiters.limiter import Limiter

_HELP: Final = """
Print the limits that count for QUEUE, or for each queue: how many shards may be visited at once, how many ids may \
begin in a time, and how much of that is used.

With --limiter they are those of a limiter that handlers ask; without QUEUE both are printed.

With --set they are changed from now on, in place of those that code declares, until --reset. A limit that is not \
named stays as it is. The command names the queue and asks; with --yes it does not ask.
"""
_EPILOGUE: Final = """
LIMITS
  rate=100/s        at most 100 ids begin in any second; also 20/10s, 500/m, 5/h
  max_running=3     at most three shards are visited at once; of a limiter
                    that has places, so many
  rate=none, max_running=none
                    no such limit

EXIT CODES
  0  The limits are printed, or changed.
  1  Nothing was changed: the answer was not yes.
  2  The command line, the settings or the app cannot work; or there is no
     terminal to ask at, and no --yes.
  3  Redis cannot be reached: run the command again.

EXAMPLES
  What limits a queue, and what it waits for:
    lowkiq limits SyncOrder
  Half of the pace for as long as the ERP is slow:
    lowkiq limits SyncOrder --set rate=50/s --reason "the ERP is slow"
  A limiter of handlers, and the use of one of its keys:
    lowkiq limits --limiter stripe --key acct_7
  As code declares them again, in a script:
    lowkiq limits SyncOrder --reset --yes
"""
_RATE: Final = re.compile(r"(?P<ids>[0-9]{1,16})/(?P<per>[0-9.]*)(?P<unit>ms|s|m|min|h|d)", re.ASCII)
_NONE: Final = "none"

command: Final = command_app("limits", help_=_HELP, epilogue=_EPILOGUE, usage="lowkiq limits [OPTIONS] [QUEUE]")


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class LimitOptions(ActOptions):
    """And what is meant beside a queue."""

    limiter: Annotated[str | None, Parameter(name="--limiter", help="A limiter that handlers ask.")] = None
    key: Annotated[str, Parameter(name="--key", help="The key of the limiter whose use is printed.")] = ""


LIMIT: Final = LimitOptions()


class LimitsOfQueues(msgspec.Struct, frozen=True, kw_only=True):
    """The limits of each queue. `skipped`: queues that were made with another declaration, each with a sentence."""

    queues: list[LimitsResponse]
    skipped: dict[str, str]
    limiters: list[LimiterResponse] = []


@command.default
def limits(
    queue: OneQueue = None,
    /,
    *,
    set_: Annotated[
        list[str] | None, Parameter(name="--set", help="A limit, as NAME=VALUE; may be given again.", negative="")
    ] = None,
    reset: Annotated[bool, flag("Let the limits count again that code declares.")] = False,
    act: LimitOptions = LIMIT,
    json: Annotated[bool, flag("Write an object as GET /api/v1/limits does; without QUEUE one with a list.")] = False,
) -> int:
    """Print or change them; the exit code."""
    changes = _changes(set_ or ())
    if changes and reset:
        raise ConfigError("--set and --reset are two changes: give one of them.")
    if queue is not None and act.limiter is not None:
        raise ConfigError("QUEUE and --limiter are two: give one of them.")
    if queue is None and act.limiter is None and (changes or reset):
        raise ConfigError("QUEUE is missing: limits are changed of one queue, or of one limiter.")
    loaded = app_of(act.app)
    if act.limiter is not None:
        limiter = _limiter_named(loaded, act.limiter)
        if (changes or reset) and not _limiter_changed(loaded, limiter, changes, act, json=json):
            return NOT_APPLIED
        _print_limiters([limiter_response(limiter.explain(act.key))], json=json)
        return DONE
    if queue is None:
        return _tell_all(loaded, json=json)
    worker = worker_of(loaded, queue)
    if (changes or reset) and not _changed(loaded, worker, changes, act, json=json):
        return NOT_APPLIED
    view = limits_response(loaded.operate(worker).limits.explain())
    if json:
        write_json(view)
    else:
        say(*_lines(view))
    return DONE


def _changes(words: Sequence[str]) -> dict[str, Any]:
    """The arguments of `QueueLimits.set`. Raises ConfigError."""
    changes: dict[str, Any] = {}
    for word in words:
        name, _, value = word.partition("=")
        if name not in {"rate", "max_running"} or not value or name in changes:
            raise ConfigError(f"--set {word} is refused: write rate=100/s, max_running=3, or =none, each once.")
        changes[name] = None if value == _NONE else _limit(name, value)
    return changes


def _limit(name: str, value: str) -> int | Rate:
    try:
        if name == "max_running":
            return int(value)
        if match := _RATE.fullmatch(value):
            return Rate(int(match["ids"]), per=seconds_of(f"{match['per'] or '1'}{match['unit']}"))
    except (ValueError, DeclarationError) as error:
        raise ConfigError(f"--set {name}={value} is refused: {str(error).removesuffix('.')}.") from error
    raise ConfigError(f"--set {name}={value} is refused: write a number of ids in a time, such as 100/s or 20/10s.")


def _changed(app: "Lowkiq", worker: type[Worker[Any]], changes: dict[str, Any], act: ActOptions, *, json: bool) -> bool:
    """Ask, and change them; whether they were changed."""
    name, url = worker.queue_name, without_password(app.core.connections.url)
    what = f"Set {change_words(changes)} as limits of" if changes else "Let the limits of code count again for"
    if not act.is_agreed(f"{what} {name} at {url}?", json=json):
        return False
    queue = app.operate(worker)
    try:
        if changes:
            queue.limits.set(**changes)
        else:
            queue.limits.reset()
    except (DeclarationError, ValueError) as error:
        raise ConfigError(str(error)) from error
    action, target = ("set limits", change_words(changes)) if changes else ("reset limits", "all shards")
    note(app, name, action, target, len(queue.reader.shards), act.reason)
    return True


def _limiter_named(app: "Lowkiq", name: str) -> "Limiter":
    limiters = {limiter.name: limiter for limiter in app.operate.limiters()}
    if name not in limiters:
        raise ConfigError(f"The app has no limiter {name!r}; it has {', '.join(limiters) or 'none'}.")
    return limiters[name]


def _limiter_changed(
    app: "Lowkiq", limiter: "Limiter", changes: dict[str, Any], act: ActOptions, *, json: bool
) -> bool:
    """Ask, and change it; whether it was changed."""
    url = without_password(app.core.connections.url)
    limit: Limit | None = None
    if changes:
        has_places = isinstance(limiter.limit, Concurrent)
        number = changes.pop("max_running" if has_places else "rate", None)
        if changes or number is None:
            option = "max_running" if has_places else "rate"
            raise ConfigError(f"Of the limiter {limiter.name!r}, {option} can be set, to a number.")
        most, seconds = (number.ids, number.per) if isinstance(number, Rate) else (number, numbers_of(limiter.limit)[1])
        limit = with_numbers(limiter.limit, most, seconds)
    what = (
        f"Let the limit of code count again for {limiter.name}" if limit is None else f"Set {limiter.name} to {limit!r}"
    )
    if not act.is_agreed(f"{what} at {url}?", json=json):
        return False
    if limit is None:
        limiter.reset()
        note(app, "", "reset limiter", limiter.name, 1, act.reason)
    else:
        limiter.set(limit)
        note(app, "", "set limiter", f"{limiter.name}: {limit!r}", 1, act.reason)
    return True


def _print_limiters(views: Sequence[LimiterResponse], *, json: bool) -> None:
    if json:
        write_json(views[0])
        return
    for view in views:
        limit = f"{view.kind} of {exact(view.most)} in {duration(view.seconds)}"
        source = ", set by an operator" if view.is_set else ""
        say(visible(f"{view.name}: {limit}{source}"))
        of = f"the key {view.key}" if view.key else "calls without a key"
        use = f"{exact(view.left)} left, {exact(view.waiting)} waiting"
        say(visible(f"  of {of}: {use}; of all keys: {exact(view.put_off)} put off so far"))


def _tell_all(app: "Lowkiq", *, json: bool) -> int:
    queues, skipped = app.core.queues.all_current()
    views = [limits_response(app.operate(queue.worker).limits.explain()) for queue in queues.values()]
    limiters = [limiter_response(limiter.explain()) for limiter in app.operate.limiters()]
    if json:
        write_json(LimitsOfQueues(queues=views, skipped=skipped, limiters=limiters))
        return DONE
    for view in views:
        say(*_lines(view))
    _print_limiters(limiters, json=False)
    remark_skipped(skipped)
    return DONE


def _lines(view: LimitsResponse) -> Iterator[str]:
    source = ", set by an operator" if view.is_set else ""
    is_limited = view.max_running is not None or view.rate is not None
    yield visible(f"{view.queue}: {'limited' if is_limited else 'no limit'}{source}")
    if view.max_running is not None:
        used = len(view.permits) + len(view.offered)
        line = f"  at most {exact(view.max_running)} shards visited at once: {exact(used)} are"
        waits = f", {exact(len(view.wait_list))} wait" if view.wait_list else ""
        yield paint(f"{line}{waits}", "yellow") if used >= view.max_running else f"{line}{waits}"
    if view.rate is not None:
        yield _rate(view, view.rate)
    for wait in view.waits_for:
        yield visible(f"  waits for {wait.queue}, of which {exact(wait.running)} shards are visited now")
    if view.undone:
        shards = ", ".join(map(str, view.undone))
        yield paint(f"  the last change has not reached the shards {shards}: make it again", "red")


def _rate(view: LimitsResponse, rate: RateResponse) -> str:
    words = rate_words(Rate(rate.ids, per=rate.per))
    if view.ids_left:
        return f"  at most {words}: {exact(view.ids_left)} may begin now"
    following = "" if view.next_id_at is None else f", the next {ago(view.next_id_at - view.at)}"
    return paint(f"  at most {words}: none may begin now{following}", "yellow")
