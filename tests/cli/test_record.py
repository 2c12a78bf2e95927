"""`lowkiq record`: the payloads of a queue in a file."""

import json
import stat
import threading
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import redis

from tests.cli.conftest import MODULE, ShopOfCommands
from tests.kit.servers import Server

CARD = "4111 1111"


@pytest.fixture
def server(own_server: Server) -> Server:
    """Of one test alone, as tests compare all that it has: keys that others leave expire."""
    return own_server


@pytest.fixture
def output(tmp_path: Path) -> Path:
    """The file."""
    return tmp_path / "orders.jsonl"


def without_card(job_id: str, payload: Any) -> Any:
    """A mask, which sees the true id."""
    assert job_id.startswith("order")
    return {**payload, "card": "x"}


def breaks(_id: str, payload: Any) -> Any:
    """One that fails, with the payload in its error."""
    raise KeyError(payload)


def makes_a_set(_id: str, payload: Any) -> Any:
    """One whose result no JSON has."""
    return {object(), *payload}


@pytest.fixture(autouse=True)
def masks(monkeypatch: pytest.MonkeyPatch, shop: ShopOfCommands) -> None:
    """In the module of the app."""
    assert shop.queue
    for mask in (without_card, breaks, makes_a_set):
        monkeypatch.setattr(f"{MODULE}.{mask.__name__}", mask, raising=False)


def lines(output: Path) -> list[dict[str, Any]]:
    """What is in the file."""
    return [json.loads(line) for line in output.read_text().splitlines()]


def content(server: Server) -> dict[Any, Any]:
    """All that the server has."""
    with closing(redis.Redis.from_url(server.url)) as client:
        return {key: client.dump(key) for key in client.scan_iter()}


def push(shop: ShopOfCommands, *jobs: tuple[str, float]) -> None:
    """Push these ids with these scores."""
    shop.worker.push_many(
        {"id": f"order {name}", "payload": {"n": score, "card": CARD}, "score": score} for name, score in jobs
    )


def test_what_waits_is_written_and_stays(shop: ShopOfCommands, server: Server, output: Path) -> None:
    """In its order, with numbers for ids and masked payloads; Redis has what it had."""
    push(shop, ("b", 1), ("a", 1))
    push(shop, ("b", 2))
    before = content(server)

    words = ["--seconds", "0", "--mask", f"{MODULE}:without_card", "--output", str(output)]
    code, out, error = shop.run("record", shop.queue, *words)

    assert (0, f"wrote {output}: payloads 3, ids 2\n", "") == (code, out, error)
    assert {("1", 1.0), ("1", 2.0), ("2", 1.0)} in (
        {(line["id"], line["score"]) for line in lines(output)},
        {({"1": "2", "2": "1"}[line["id"]], line["score"]) for line in lines(output)},
    )
    assert [{"card": "x", "n": line["score"]} for line in lines(output)] == [
        dict(sorted(line["payload"].items())) for line in lines(output)
    ]
    assert 0.0 == lines(output)[0]["after"]
    assert CARD not in output.read_text()
    assert 0o600 == stat.S_IMODE(output.stat().st_mode)
    assert before == content(server)


def test_scores_that_are_times_make_the_order(shop: ShopOfCommands, output: Path) -> None:
    """As those of pushes without versions are; the gaps are theirs, and the first payloads are taken."""
    now = shop.app.core.backend.clock.time()
    push(shop, ("a", now - 5), ("b", now - 7), ("a", now - 6.5))

    code, out, _ = shop.run("record", shop.queue, "--count", "2", "--output", str(output), "--keep-ids", "--json")

    assert (0, 2) == (code, json.loads(out)["payloads"])
    assert [("order b", 0.0), ("order a", 0.5)] == [(line["id"], line["after"]) for line in lines(output)]


def test_what_is_pushed_meanwhile_is_written_too(shop: ShopOfCommands, output: Path) -> None:
    """The command looks on until it has enough."""
    push(shop, ("a", 1))
    thread = threading.Thread(target=push, args=(shop, ("b", 1)))
    thread.start()
    try:
        code, _, _ = shop.run("record", shop.queue, "--count", "2", "--output", str(output))
    finally:
        thread.join()

    assert (0, ["1", "2"]) == (code, [line["id"] for line in lines(output)])


def test_the_mask_of_the_app_is_the_default(shop: ShopOfCommands, output: Path) -> None:
    """It is called with the name of the queue, however the command names it."""
    shop.app.core.configure(mask=lambda queue, job_id, _payload: {"of": f"{queue} {job_id}"})
    push(shop, ("a", 1))

    _, _, note = shop.run("record", "SyncOrder", "--seconds", "0", "--output", str(output))

    assert ("", [{"of": f"{shop.queue} order a"}]) == (note, [line["payload"] for line in lines(output)])


def test_without_a_mask_a_note_says_so(shop: ShopOfCommands, output: Path) -> None:
    """Payloads are as they are."""
    push(shop, ("a", 1))

    _, _, note = shop.run("record", shop.queue, "--seconds", "0", "--output", str(output))

    assert "note: no mask is there, so payloads are written as they are.\n" == note
    assert [CARD] == [line["payload"]["card"] for line in lines(output)]


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--mask", f"{MODULE}:breaks"], "The mask failed on payload 1, by KeyError. No file is written."),
        (["--mask", f"{MODULE}:makes_a_set"], "Payload 1 is not JSON: let --mask return some. No file is written."),
        (["--mask", f"{MODULE}:missing"], f"Module {MODULE!r} has no 'missing'"),
        (["--mask", f"{MODULE}:__name__"], f"--mask: {MODULE}:__name__ is not a function."),
    ],
)
def test_what_fails_writes_nothing(shop: ShopOfCommands, output: Path, words: list[str], sentence: str) -> None:
    """Exit code 2, a sentence without a word of a payload, and the file that was there before."""
    push(shop, ("a", 1))
    output.write_text("before")

    code, out, error = shop.run("record", shop.queue, "--seconds", "0", "--output", str(output), *words)

    assert (2, "") == (code, out)
    assert sentence in error
    assert CARD not in error
    assert (["orders.jsonl"], "before") == ([path.name for path in output.parent.iterdir()], output.read_text())


def test_a_folder_that_cannot_be_made_is_refused(shop: ShopOfCommands) -> None:
    """With a sentence."""
    push(shop, ("a", 1))

    code, _, error = shop.run("record", shop.queue, "--seconds", "0", "--output", "/proc/nowhere/orders.jsonl")

    assert 2 == code
    assert "/proc/nowhere/orders.jsonl cannot be written: " in error


def test_an_empty_queue_and_an_unknown_one_are_refused(shop: ShopOfCommands, server: Server, output: Path) -> None:
    """A queue that nobody has pushed to is not made by the look."""
    words = ["--seconds", "0", "--output", str(output)]
    unknown = shop.run("record", "orders", *words)
    before = content(server)
    new = shop.run("record", shop.queue, *words)
    after = content(server)
    push(shop, ("a", 1))
    shop.app.drain()
    empty = shop.run("record", shop.queue, *words)

    sentence = f"The queue {shop.queue!r} is empty, so there is nothing to record."
    assert before == after
    assert [2, 2, 2] == [code for code, _, _ in (unknown, new, empty)]
    assert "There is no queue 'orders'" in unknown[2]
    assert all(sentence in error for _, _, error in (new, empty))
    assert not output.exists()
