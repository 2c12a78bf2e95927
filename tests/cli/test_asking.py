"""Every command that changes what others work with says what it touches, and asks."""

import sys
from collections.abc import Callable, Iterator, Mapping
from functools import reduce
from typing import Any, Final

import pytest
from cyclopts import App

from lowkiq_lambda.cli.catalog import every_command, lowkiq
from lowkiq_lambda.engine.heartbeat import Heartbeat
from lowkiq_lambda.operate.inspect.activity import read_activity
from lowkiq_lambda.store.shard.nodes import ServerTime
from tests.cli.conftest import ShopOfCommands, Type
from tests.kit.workers import jobs_of

ASK: Final[Mapping[str, Callable[[str, str], list[list[str]]]]] = {
    "requeue": lambda queue, _: [
        ["requeue", queue, "bad 1"],
        ["requeue", queue, "--all"],
        ["requeue", queue, "--filter", "prefix=bad", "--rate", "5"],
    ],
    "kill": lambda queue, _: [["kill", queue, "failed"]],
    "unblock": lambda queue, _: [["unblock", queue, "blocked"]],
    "run-now": lambda queue, _: [["run-now", queue, "--all"]],
    "delete": lambda queue, _: [["delete", queue, "--all"], ["delete", queue, "--morgue", "bad 1"]],
    "cancel": lambda queue, _: [["cancel", queue, "later"]],
    "forget-keys": lambda queue, _: [["forget-keys", queue, "later"], ["forget-keys", queue, "--all"]],
    "pause": lambda queue, _: [["pause", queue], ["pause", queue, "--id", "later"]],
    "resume": lambda queue, _: [["resume", queue], ["resume", queue, "--id", "later"]],
    "reshard": lambda queue, _: [
        ["reshard", queue, "--to", "6"],
        ["reshard", queue, "--to", "6", "--announce"],
        ["reshard", queue, "--forget", "9"],
    ],
    "forget-timing": lambda queue, _: [["forget-timing", queue]],
    "limits": lambda queue, _: [["limits", queue, "--set", "rate=5/s"], ["limits", queue, "--reset"]],
    "schedules put": lambda queue, _: [["schedules", "put", queue, "nightly", "--id", "1", "--every", "10m"]],
    "schedules run": lambda queue, _: [["schedules", "run", queue, "nightly"]],
    "schedules on": lambda queue, _: [["schedules", "on", queue, "--all"]],
    "schedules off": lambda queue, _: [["schedules", "off", queue, "--all"]],
    "schedules remove": lambda queue, _: [["schedules", "remove", queue, "nightly"]],
    "processes": lambda _, process: [["processes", "--stop", process], ["processes", "--quiet", process]],
}
"""Commands that change what others work with."""
ASK_ELSEWHERE: Final = {
    "auto",
    "replay",
    "reset",
    "stack rollback",
    "stack schedules",
    "undo",
    "edit",
    "evict",
    "tasks",
}
"""As these: tests of their own have a want of shards, kept runs, a change, an embedded server, an AWS, and so on."""
LOOK: Final = {
    *("advise", "doctor", "show", "why", "stats", "top", "verify", "runs", "tail"),
    *("dashboard", "redis", "completion", "schedules", "stack"),
    *("ls", "errors", "tenants", "activity", "schedules list", "schedules next", "schedules load", "schedules diff"),
    *("schedules dump", "stack costs", "alerts", "open", "simulate", "scale"),
}
ARE_THE_ACT: Final = {
    "run",
    "drain",
    "push",
    "new",
    "upgrade",
    "fuzz",
    "record",
    "stack invoke",
    "stack cloud",
    "stack build",
}
"""Perform or push jobs, or write files of one's own: nobody calls them for anything else."""


@pytest.fixture
def process(shop: ShopOfCommands) -> Iterator[str]:
    """One that drains, as far as is known."""
    heartbeat = Heartbeat(shop.app.core.drains.drainer, "daemon", 5, print)
    heartbeat.sender.send(heartbeat.told())
    yield heartbeat.id
    assert "" == heartbeat.sender.send(heartbeat.told()), "it was given no order"


def orders(shop: ShopOfCommands, process: str) -> list[list[str]]:
    """All that can be asked for, where there is something to change."""
    shop.worker.push_many([*jobs_of(["bad 1", "bad 2"]), {"id": "later", "delay": 600}])
    shop.app.drain()
    shop.app.operate(shop.worker).resharding().accept(9)
    return [words for made in ASK.values() for words in made(shop.queue, process)]


def state(shop: ShopOfCommands) -> Any:
    """What an order would change."""
    layout = shop.app.operate(shop.worker).resharding().layout
    overview = shop.app.operate(shop.worker)
    ids = ["bad 1", "bad 2", "later"]
    past = read_activity(shop.app.core.backend, 0.0, [shop.queue], 10)
    return layout, overview.waiting.fetch(ids), overview.morgue.fetch(ids), past


def test_the_catalog_has_no_command_of_which_this_does_not_know() -> None:
    """A new command either asks, or it is told here why it need not; and all that ask take --yes."""
    known = {*ASK, *ASK_ELSEWHERE, *LOOK, *ARE_THE_ACT}
    listed = {*every_command()}
    asking = {*ASK, *ASK_ELSEWHERE}
    program = lowkiq(*listed)

    assert known == listed
    commands = {words: reduce(App.__getitem__, words.split(), program) for words in listed}
    assert asking == {words for words, command in commands.items() if "--yes" in options_of(command)}


def options_of(command: Any) -> set[str]:
    """The options of a command."""
    arguments = command.assemble_argument_collection() if command.default_command else ()
    return {name for argument in arguments for name in argument.names}


def test_without_a_terminal_and_without_yes_every_change_is_refused(shop: ShopOfCommands, process: str) -> None:
    """The exit code is 2, the error says what would have been touched and at which server, and nothing is changed."""
    wanted = orders(shop, process)
    before = state(shop)
    ended = [shop.run(*words) for words in wanted]

    assert [(2, "")] * len(wanted) == [(code, out) for code, out, _ in ended]
    for words, (_, _, told) in zip(wanted, ended, strict=True):
        assert f" at {shop.app.core.connections.url}" in told, words
        assert told.endswith("There is no terminal to ask at: give --yes.\n"), words
    assert before == state(shop)


def test_an_answer_that_is_not_yes_changes_nothing(shop: ShopOfCommands, process: str, type_in: Type) -> None:
    """The exit code is 1 then, as that of a dry run."""
    wanted = orders(shop, process)
    before = state(shop)
    ended = []
    for words in wanted:
        type_in("y\n")
        ended.append(shop.run(*words))

    assert [1] * len(wanted) == [code for code, _, _ in ended]
    assert all(not told or told.startswith("note: shards 3 to 5 are new") for _, _, told in ended)
    assert all(out.endswith("Only 'yes' will do: Nothing was changed.\n") for _, out, _ in ended)
    assert before == state(shop)


def test_a_look_asks_nothing(shop: ShopOfCommands, process: str) -> None:
    """Dry runs, lists, and orders that would find all as they want it need neither a terminal nor --yes."""
    orders(shop, process)

    codes = [
        shop.run(*words)[0]
        for words in (
            ["requeue", shop.queue, "--all", "--dry-run"],
            ["delete", shop.queue, "--all", "--dry-run"],
            ["reshard", shop.queue, "--to", "6", "--dry-run"],
            ["reshard", shop.queue],
            ["reshard", shop.queue, "--to", "3"],
            ["reshard", shop.queue, "--abort"],
            ["processes"],
        )
    ]

    assert [1, 1, 1, 0, 0, 0, 0] == codes


def test_a_requeue_begins_when_the_answer_is_given(
    shop: ShopOfCommands, type_in: Type, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The time in which somebody thinks does not make more ids due at once than --rate says."""
    orders(shop, "")
    type_in("yes\n")
    answer, observe, now = sys.stdin.readline, ServerTime.observe, ServerTime.now

    def think() -> str:
        monkeypatch.setattr(ServerTime, "observe", lambda *args: observe(*args) + 60)
        monkeypatch.setattr(ServerTime, "now", lambda node: (measured := now(node)) and measured + 60)
        return answer()

    monkeypatch.setattr(sys.stdin, "readline", think)
    shard = shop.app.core.drains.drainer.shards()[0]
    asked_at = shop.app.core.backend.now(shard)

    code, out, _ = shop.run("requeue", shop.queue, "--all", "--rate", "1")

    first = min(job.due_at for job in shop.app.operate(shop.worker).waiting.fetch(["bad 1", "bad 2"]))
    assert 0 == code
    assert "Requeue 2 jobs in the morgue of " in out
    # Two measurements of the server's clock may differ by milliseconds.
    assert asked_at + 59 < first
