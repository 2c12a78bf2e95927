"""`lowkiq edit`: the payloads of an id, and another one in the place of one."""

import json
import os
import subprocess
import sys
from typing import Any

import pytest

from lowkiq_lambda.operate.acts.editing import StoredPayload
from lowkiq_lambda.operate.inspect.activity import read_activity
from tests.cli.conftest import ShopOfCommands, Type
from tests.kit.typing_in import terminal

REASON = ("--reason", "ticket 12")
PROGRAM = """
from lowkiq_lambda import Config, Lowkiq, Worker

app = Lowkiq(Config(redis_url={url!r}))


@app.worker
class SyncOrder(Worker):
    queue_name = {queue!r}
    shards_count = 3

    def perform(self, batch):
        pass
"""


def first_of(shop: ShopOfCommands, job_id: str = "a") -> StoredPayload:
    """The first payload of the id."""
    return shop.app.operate(shop.worker).payloads(job_id)[0]


def edit(shop: ShopOfCommands, *more: str, payload: str = '{"status": "paid"}') -> tuple[int, str, str]:
    """In the place of the first payload of the id."""
    return shop.run("edit", shop.queue, "a", str(first_of(shop).arrival), "--payload", payload, *more)


def test_without_a_number_the_payloads_are_listed(shop: ShopOfCommands) -> None:
    """Those that wait, with their scores; what a terminal would act on is made visible."""
    shop.worker.push("a", "one\x1b[2J", score=1.5)
    shop.worker.push("a", "x" * 300, score=2.0)

    code, out, _ = shop.run("edit", shop.queue, "a")

    first, second = out.splitlines()
    arrival = first_of(shop).arrival
    assert (0, f"{arrival} waiting, score 1.5: ") == (code, first[: first.index('"')])
    assert "\x1b" not in first
    assert second.endswith("...")


def test_a_payload_without_a_number_is_refused(shop: ShopOfCommands) -> None:
    """It would be ignored, and the code would say that all is done."""
    shop.worker.push("a", 1)
    code, out, told = shop.run("edit", shop.queue, "a", "--payload", "2", *REASON, "--yes")
    assert (2, "", True, 1) == (code, out, "--payload needs ARRIVAL" in told, first_of(shop).payload)


def test_the_payloads_are_an_object_with_json(shop: ShopOfCommands, monkeypatch: pytest.MonkeyPatch) -> None:
    """As the API has it: null in the place of one that the mask hides."""
    monkeypatch.setattr(type(shop.app.config), "mask", property(lambda _: lambda _queue, _id, payload: payload and 1))
    shop.worker.push("a", 1)
    shop.worker.push("a", "secret", score=1.5)
    payloads = json.loads(shop.run("edit", shop.queue, "a", "--json")[1])["payloads"]
    assert {1, None} == {one["payload"] for one in payloads}
    assert {"place", "arrival", "score", "digest", "payload"} == payloads[0].keys()


def test_the_help_says_that_a_reason_is_needed(shop: ShopOfCommands) -> None:
    """A default would say that it is not."""
    text = shop.run("edit", "--help")[1]
    assert "which an edit needs" in " ".join(text.split())
    assert 'default: ""' not in text


def test_an_edit_is_made_after_a_yes_and_can_be_undone(shop: ShopOfCommands, type_in: Type) -> None:
    """The question has the old payload; anything but yes changes nothing."""
    shop.worker.push("a", {"status": "new"})
    type_in("no\n")
    code, out, _ = edit(shop, *REASON)
    assert (1, True) == (code, '{"status":"new"}' in out)
    assert {"status": "new"} == first_of(shop).payload

    type_in("yes\n")
    code, out, _ = edit(shop, *REASON)
    assert (0, {"status": "paid"}) == (code, first_of(shop).payload)
    action_id = out.split()[-1]
    assert (0, {"status": "new"}) == (shop.run("undo", action_id, "--yes")[0], first_of(shop).payload)


def test_an_edit_is_an_object_with_json_and_a_line_of_the_activity(
    shop: ShopOfCommands, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With its id, its person and its reason."""
    monkeypatch.setenv("LOWKIQ_OPERATOR", "olga")
    shop.worker.push("a", 1)
    arrival = first_of(shop).arrival

    code, out, _ = edit(shop, *REASON, "--yes", "--json")

    edited = json.loads(out)
    assert (0, "waiting", False) == (code, edited["place"], edited["merged"])
    (line,) = read_activity(shop.app.core.backend, 0.0, [shop.queue], 10)
    assert ("edit", f"payload {arrival} of a", "ticket 12") == (line.action, line.target, line.reason)
    assert (edited["action_id"], "olga (lowkiq)") == (line.action_id, line.who)


@pytest.mark.parametrize(
    ("more", "payload", "word"),
    [
        ((), "2", "reason of 1 to 200"),
        (("--reason", "x" * 201), "2", "reason of 1 to 200"),
        (REASON, "{", "--payload is not JSON"),
    ],
)
def test_what_cannot_be_is_refused(shop: ShopOfCommands, more: tuple[str, ...], payload: str, word: str) -> None:
    """And nothing is changed."""
    shop.worker.push("a", 1)
    answer = edit(shop, *more, "--yes", payload=payload)
    assert (2, True) == (answer[0], word in answer[2])
    assert 1 == first_of(shop).payload


def test_a_payload_that_is_gone_or_has_changed_is_not_edited(
    shop: ShopOfCommands, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another operator was faster, perhaps while the question was asked."""
    shop.worker.push("a", 1)
    code, _, told = shop.run("edit", shop.queue, "a", "4711", "--payload", "2", *REASON, "--yes")
    assert (1, True) == (code, "look again" in told)

    def agreed(_question: str) -> bool:
        shop.app.operate(shop.worker).edit("a", first_of(shop).arrival, 3, reason="first")
        return True

    monkeypatch.setattr("lowkiq_lambda.cli.edit.agreed", agreed)
    code, _, told = edit(shop, *REASON)
    assert (1, True, 3) == (code, "changed since you looked" in told, first_of(shop).payload)


def test_what_the_app_hides_is_neither_printed_nor_edited(
    shop: ShopOfCommands, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By its mask; a payload that the mask leaves as it is can be edited."""

    def mask(_queue: str, _job_id: str, payload: Any) -> Any:
        return "..." if payload == "secret" else payload

    monkeypatch.setattr(type(shop.app.config), "mask", property(lambda _: mask))
    shop.worker.push("a", "secret")
    assert "secret" not in shop.run("edit", shop.queue, "a")[1]
    code, out, told = edit(shop, *REASON, "--yes")
    assert (1, True, False) == (code, "cannot be edited" in told, "secret" in out + told)
    assert "secret" == first_of(shop).payload
    shop.worker.push("a", "open", score=-1.0)
    assert 0 == edit(shop, *REASON, "--yes")[0]


@pytest.mark.parametrize(("typed", "code"), [("yes\n", 0), (None, 2)])
def test_a_process_asks_at_its_terminal_and_cannot_without_one(
    shop: ShopOfCommands, tmp_path: Any, typed: str | None, code: int
) -> None:
    """Without a terminal --yes is needed."""
    (tmp_path / "shop_of_edits.py").write_text(PROGRAM.format(url=shop.app.config.redis_url, queue=shop.queue))
    shop.worker.push("a", 1)
    words = ["edit", shop.queue, "a", str(first_of(shop).arrival), "--payload", "2", *REASON]
    command = [sys.executable, "-m", "lowkiq_lambda", *words, "--app", "shop_of_edits:app"]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(tmp_path), *sys.path])}
    environment.pop("LOWKIQ_APP", None)

    def run(stdin: int) -> int:
        return subprocess.run(
            command, stdin=stdin, env=environment, cwd=tmp_path, capture_output=True, check=False
        ).returncode

    if typed is None:
        assert code == run(subprocess.DEVNULL)
    else:
        with terminal(typed) as stdin:
            assert code == run(stdin)
    assert (2 if code == 0 else 1) == first_of(shop).payload
