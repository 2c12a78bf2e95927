"""`lowkiq forget-keys`, and what of uniqueness the other commands have."""

import io
import json
import sys

import pytest

from lowkiq_lambda.operate.inspect.activity import read_activity
from tests.cli.conftest import ShopOfCommands, Type


def keyed(shop: ShopOfCommands) -> None:
    """Two jobs that were pushed with two keys."""
    shop.worker.push_many([{"id": id_, "key": key} for id_ in "ab" for key in ("k", "l")])


def known(shop: ShopOfCommands) -> list[bool]:
    """Of both ids and both keys, whether it is remembered."""
    return [shop.worker.push(id_, key=key).repeated for id_ in "ab" for key in ("k", "l")]


def test_it_asks_and_is_noted(shop: ShopOfCommands, type_in: Type) -> None:
    """Anything but yes forgets nothing."""
    keyed(shop)
    type_in("no\n")
    refused = shop.run("forget-keys", shop.queue, "a")
    type_in("yes\n")
    done = shop.run("forget-keys", shop.queue, "a", "--reason", "once more")

    url = shop.app.core.connections.url
    question = f"Forget the keys of 1 job (a) of {shop.queue} at {url}? Only 'yes' will do: "
    assert (1, f"{question}Nothing was changed.\n", "") == refused
    assert (0, f"{question}2 keys forgotten\n", "") == done
    (action,) = read_activity(shop.app.core.backend, 0.0, [shop.queue], 10)
    assert ("forget keys", 2, "once more") == (action.action, action.changed, action.reason)
    assert [False, False, True, True] == known(shop)


@pytest.mark.parametrize(
    ("words", "forgotten", "left"),
    [
        (["a", "b", "--key", "k"], 2, [False, True, False, True]),
        (["--all"], 4, [False] * 4),
    ],
)
def test_a_script_says_whose_keys(shop: ShopOfCommands, words: list[str], forgotten: int, left: list[bool]) -> None:
    """One key of ids, or all of the queue, as JSON."""
    keyed(shop)

    code, out, _ = shop.run("forget-keys", shop.queue, *words, "--yes", "--json")

    assert (0, {"queue": shop.queue, "forgotten": forgotten}) == (code, json.loads(out))
    assert left == known(shop)


@pytest.mark.parametrize("words", [[], ["a", "--all"], ["--all", "--key", "k"]])
def test_it_is_told_whose_keys(shop: ShopOfCommands, words: list[str]) -> None:
    """Else the command line cannot work."""
    code, _, told = shop.run("forget-keys", shop.queue, *words, "--yes")

    assert (2, True) == (code, "Give ids, with or without --key, or --all" in told)


def test_an_empty_key_does_not_mean_all(shop: ShopOfCommands) -> None:
    """A script whose variable is empty forgets nothing."""
    keyed(shop)

    code, _, told = shop.run("forget-keys", shop.queue, "a", "--key", "", "--yes")

    assert (2, True) == (code, "--key is empty" in told)
    assert [True] * 4 == known(shop)


@pytest.mark.parametrize("command", ["delete", "cancel"])
def test_jobs_go_with_their_keys(shop: ShopOfCommands, type_in: Type, command: str) -> None:
    """If the command says so, and the answer is yes."""
    keyed(shop)
    type_in("no\n")
    shop.run(command, shop.queue, "a", "--forget-keys")
    shop.run(command, shop.queue, "b", "--yes")
    before = known(shop)
    shop.run(command, shop.queue, "a", "--forget-keys", "--yes")

    assert ([True] * 4, [False, False, True, True]) == (before, known(shop))


def test_a_deletion_forgets_keys_of_ids_alone(shop: ShopOfCommands) -> None:
    """A whole list has another command."""
    code, _, told = shop.run("delete", shop.queue, "--all", "--forget-keys", "--yes")

    assert (2, True) == (code, "lowkiq forget-keys --all" in told)


def test_a_push_may_ask(shop: ShopOfCommands) -> None:
    """It says why it stored nothing; one that replaces says that it joined."""
    shop.run("push", shop.queue, "a", '"old"', "--delay", "60")
    dropped = shop.run("push", shop.queue, "a", '"new"', "--unless", "busy")
    replaced = shop.run("push", shop.queue, "a", '"new"', "--on-conflict", "replace", "--json")

    assert (0, True) == (dropped[0], dropped[1].endswith("dropped: the id waits, and nothing changed\n"))
    assert ("", True) == tuple(json.loads(replaced[1])[name] for name in ("dropped", "merged"))


def test_a_file_counts_what_was_dropped(shop: ShopOfCommands, monkeypatch: pytest.MonkeyPatch) -> None:
    """Beside what merged."""
    lines = b'{"id": 1}\n{"id": 1, "unless": "waiting"}\n{"id": 2, "unless": "waiting"}\n'
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(lines)))
    code, out, _ = shop.run("push", shop.queue, "--file", "-", "--json")

    assert (0, 3, 1) == (code, json.loads(out)["written"], json.loads(out)["dropped"])
