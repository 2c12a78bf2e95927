"""`lowkiq auto`: how many shards queues need that leave it to the library, and what people answer."""

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any, Final

from cyclopts import Parameter

from lowkiq_lambda.base.address import without_password
from lowkiq_lambda.base.errors import ConfigError
from lowkiq_lambda.cli.codes import DONE, FAILED, NOT_APPLIED
from lowkiq_lambda.cli.noting import note, person, report_group
from lowkiq_lambda.cli.output import remark_skipped, say, when, write_json
from lowkiq_lambda.cli.parts import command_app, flag, length_of
from lowkiq_lambda.cli.queues import ACT, ActOptions, OneQueue, app_of, worker_of
from lowkiq_lambda.declare.worker import Worker, auto_of
from lowkiq_lambda.operate.presentation.formatting import duration, visible

if TYPE_CHECKING:
    from lowkiq_lambda.app import Lowkiq
    from lowkiq_lambda.operate.auto.duty import ShardSchedules
    from lowkiq_lambda.operate.auto.queue_auto import QueueAuto
    from lowkiq_lambda.views.auto import AutoDecision, AutoState

_HELP: Final = """
Print how many shards a queue with shards_count = "auto" needs: its evidence, the cause, the proposal, and what a move \
costs. Nothing is changed without an option.

Without QUEUE: what housekeeping has decided last about each such queue of the app.
"""
_EPILOGUE: Final = """
EXIT CODES
  0  Nothing is proposed; or it is done.
  1  Another number of shards is proposed; or nothing was changed, as nothing
     is proposed, the answer was not yes, or a move came between.
  2  The command line, the settings or the app cannot work; or there is no
     terminal to ask at, and no --yes.
  3  Redis cannot be reached.

EXAMPLES
  All queues of the app that leave their number of shards to the library:
    lowkiq auto
  One of them, and then its proposal:
    lowkiq auto SyncOrder
    lowkiq auto SyncOrder --do
  No proposals and no moves for a week:
    lowkiq auto SyncOrder --hold 7d --reason "sale"
"""

command: Final = command_app("auto", help_=_HELP, epilogue=_EPILOGUE, usage="lowkiq auto [OPTIONS] [QUEUE]")


@command.default
def auto(  # noqa: PLR0913 - the options
    queue: OneQueue = None,
    /,
    *,
    do: Annotated[bool, flag("Carry out the proposal for QUEUE.")] = False,
    hold: Annotated[
        str | None, Parameter(help="Stop proposals and moves of QUEUE for so long: 90s, 30m, 2h or 7d.")
    ] = None,
    release: Annotated[
        bool, flag("End a hold of QUEUE, and let it move again after a move that did not help or was turned round.")
    ] = False,
    act: ActOptions = ACT,
    json: Annotated[bool, flag("Write it as JSON; times are Unix seconds.")] = False,
) -> int:
    """Do what the options say; the exit code."""
    app = app_of(act.app)
    if sum((do, hold is not None, release)) > (queue is not None):
        raise ConfigError("Give one of --do, --hold and --release, with a QUEUE.")
    if queue is None:
        return _list(app, as_json=json)
    worker = worker_of(app, queue)
    of_queue, name = app.operate(worker).auto, worker.queue_name
    where = f"{name} at {without_password(app.core.connections.url)}"
    if hold is not None:
        return _hold(app, of_queue, where, hold, act, as_json=json)
    if release:
        return _release(app, of_queue, where, act, as_json=json)
    decision = of_queue.decide()
    if do:
        return _do(app, worker, decision, act, as_json=json)
    state = of_queue.state()
    is_proposed = decision.to is not None
    next_step = [f"-> carry it out: lowkiq auto {name} --do"] if is_proposed else []
    lines = *_decision_lines(decision), *_state_lines(state), *next_step
    _tell({"decision": decision, "state": state}, *lines, as_json=json)
    return FAILED if is_proposed else DONE


def _list(app: "Lowkiq", *, as_json: bool) -> int:
    _, refused = app.core.queues.all_current()
    workers = {worker.queue_name: worker for worker in app.workers if auto_of(worker) is not None}
    skipped = {name: refused[name] for name in workers if name in refused}
    states = [app.operate(worker).auto.state() for name, worker in workers.items() if name not in skipped]
    lines = [
        f"{one.queue}: {one.decision.says if one.decision else 'housekeeping has not looked yet'}" for one in states
    ]
    if not workers:
        lines = ['No queue of the app leaves its number of shards to the library: shards_count = "auto" does.']
    _tell({"queues": states, "skipped": skipped}, *lines, as_json=as_json)
    remark_skipped(skipped)
    return FAILED if any(state.decision and state.decision.to is not None for state in states) else DONE


def _decision_lines(decision: "AutoDecision") -> list[str]:
    from lowkiq_lambda.operate.auto.words import lines_of

    return lines_of(decision)


def _state_lines(state: "AutoState") -> Iterator[str]:
    yield f"Bounds: {state.least} to {state.most} shards, lag up to {state.lag:g} s; auto is {state.mode!r}."
    if state.held_until is not None:
        yield f"Stopped by {state.held_by or 'somebody'} until {when(state.held_until)}."
    for move in state.moves:
        more = ", turned round" if move.is_turned else ""
        after = (
            ""
            if move.lag_after is None
            else f", lag {duration(move.lag_before)} before and {duration(move.lag_after)} after"
        )
        yield f"Moved at {when(move.at)} from {move.shards} to {move.to} shards{more}{after}."


def _do(app: "Lowkiq", worker: type[Worker[Any]], decision: "AutoDecision", act: ActOptions, *, as_json: bool) -> int:
    lines = _decision_lines(decision)
    if decision.to is None:
        nothing = "Nothing is proposed, and nothing was changed."
        _tell({"decision": decision, "done": False}, *lines, nothing, as_json=as_json)
        return FAILED
    if not as_json:
        say(*map(visible, lines))
    question = f"Move {decision.ids:,} jobs of {decision.queue} from {decision.shards} to {decision.to} shards?"
    if not act.is_agreed(question, json=as_json):
        return NOT_APPLIED
    note(app, decision.queue, "reshard", decision.says, decision.to, act.reason)
    queue = app.operate(worker)
    queue.auto.do(decision, (lambda *_: None) if as_json else report_group, _schedules())
    shards = queue.resharding().layout.after
    is_done = shards == decision.to
    turned = "" if is_done else f": its move to {decision.to} was turned round"
    _tell({"decision": decision, "done": is_done}, f"{decision.queue} has {shards} shards{turned}", as_json=as_json)
    return DONE if is_done else FAILED


def _schedules() -> "ShardSchedules | None":
    """Those that `lowkiq stack schedules` has made, where the environment names them, as it does for functions."""
    prefix = os.environ.get("LOWKIQ_AUTO_SCHEDULES")
    if not prefix:
        return None
    from lowkiq_lambda.aws.drain_schedules.following import FollowedSchedules

    return FollowedSchedules(prefix)


def _hold(  # noqa: PLR0913, PLR0917 - what is stopped, and how it is said
    app: "Lowkiq",
    of_queue: "QueueAuto",
    where: str,
    text: str,
    act: ActOptions,
    as_json: bool,  # noqa: FBT001 - as above
) -> int:
    seconds = length_of(text)
    if seconds is None:
        raise ConfigError("Give --hold a whole number and its unit, such as 30m, 2h or 7d.")
    _ = of_queue.bounds
    if not act.is_agreed(f"Stop proposals and moves of {where} for {duration(seconds)}?", json=as_json):
        return NOT_APPLIED
    until = of_queue.hold(seconds, by=person())
    note(app, of_queue.name, "auto", f"held for {duration(seconds)}", 0, act.reason)
    _tell({"queue": of_queue.name, "held_until": until}, f"stopped until {when(until)}", as_json=as_json)
    return DONE


def _release(app: "Lowkiq", of_queue: "QueueAuto", where: str, act: ActOptions, *, as_json: bool) -> int:
    _ = of_queue.bounds
    if not act.is_agreed(f"Let {where} have proposals and moves again?", json=as_json):
        return NOT_APPLIED
    of_queue.release()
    note(app, of_queue.name, "auto", "released", 0, act.reason)
    _tell({"queue": of_queue.name, "held_until": None}, "it has proposals and moves again", as_json=as_json)
    return DONE


def _tell(value: object, *lines: str, as_json: bool) -> None:
    if as_json:
        write_json(value)
    else:
        say(*map(visible, lines))
