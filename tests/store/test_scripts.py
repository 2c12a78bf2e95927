"""How scripts are put together: keys by name, keys that not every queue uses, includes that need others."""

from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

import msgspec
import pytest
from redis.exceptions import ResponseError

import lowkiq_lambda.store
from lowkiq_lambda.base.errors import ShardDamaged
from lowkiq_lambda.store.shard import backend as backend_module
from lowkiq_lambda.store.shard import reader as reader_module
from lowkiq_lambda.store.shard.keys import FEATURES, ShardGroup, ShardRef
from lowkiq_lambda.store.shard.lease_replies import AcquireReply, SettleReply
from lowkiq_lambda.store.shard.scripts import _FOLDERS, Linker, ReplyShape, Script, evalsha, script
from lowkiq_lambda.store.shard.state import ShardStateReply, probe
from tests.kit.desk import Desk
from tests.kit.servers import Server

LUA = Path(lowkiq_lambda.store.__file__).parent / "lua"
Write: TypeAlias = Callable[[str, str], None]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Writes a file of a folder of scripts."""

    def write_file(name: str, text: str) -> None:
        path = tmp_path / f"{name}.lua"
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)

    return write_file


@pytest.fixture
def linker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Linker:
    """Links the scripts of that folder, with features that the library does not have."""
    monkeypatch.setitem(FEATURES, "stamps", ("marks", "tags"))
    monkeypatch.setitem(FEATURES, "rates", ("tokens",))
    return Linker(tmp_path)


def run(server: Server, code: Script, place: ShardRef | ShardGroup, *args: str) -> object:
    """What the script answers."""
    picked = place.some(code.pick)
    return server.admin.execute_command("EVAL", code.source, len(picked), *picked, *args)


def test_a_script_is_given_the_keys_that_it_and_its_includes_name(
    server: Server, queue_name: str, linker: Linker, write: Write
) -> None:
    """Each key has its name there, whatever else the script is given, and in whatever order it was declared."""
    write("read/own", "--! keys meta due\n--! needs first\nreturn {due, meta, first()}")
    write(
        "include/first",
        "--! gives first\n--! keys flight\n--! needs second\nlocal function first() return flight .. second() end",
    )
    write("include/second", "--! gives second\n--! keys jobs\nlocal function second() return jobs end")
    shard = ShardRef(queue_name, 1, 0)

    code = linker.script("own")

    assert ("due", "jobs", "flight", "meta") == code.keys
    expected = [shard.key("due"), shard.key("meta"), shard.key("flight") + shard.key("jobs")]
    assert [key.encode() for key in expected] == run(server, code, shard)


def test_a_feature_with_keys_costs_nothing_where_it_is_not_used(
    server: Server, queue_name: str, linker: Linker, write: Write
) -> None:
    """A shard without it gets no key, no function and no byte of it, and the script knows that by name."""
    write("drain/own", "--! keys due marks\n--! with stamps mark\nreturn {due, has_stamps and mark() or 'none'}")
    write("include/mark", "--! gives mark\n--! keys tags\nlocal function mark() return marks .. tags end")
    plain, tracked = ShardRef(queue_name, 1, 0), ShardRef(queue_name, 1, 0, features=("rates", "stamps"))

    without, code = linker.script("own"), linker.script("own", tracked.features)

    assert ("due",) == without.keys
    assert "function mark" not in without.source
    assert [plain.key("due").encode(), b"none"] == run(server, without, plain)
    assert ("due", "marks", "tags") == code.keys
    assert [part.encode() for part in (tracked.key("due"), tracked.key("marks") + tracked.key("tags"))] == run(
        server, code, tracked
    )


def test_a_queue_that_uses_a_feature_is_called_with_its_script(
    desk: Desk, queue_name: str, linker: Linker, write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The shard says which features its queue uses, and each call goes by that."""
    write("drain/own", "--! keys due marks\nreturn {'OK', has_stamps and marks or due}")
    monkeypatch.setattr(backend_module, "script", linker.script)
    backend = desk.app.core.backend
    plain, tracked = ShardRef(queue_name, 1, 0), ShardRef(queue_name, 1, 0, features=("stamps",))

    assert plain.key("due").encode() == backend.run("own", plain, [], retry_for=0.0)[1]
    assert tracked.key("marks").encode() == backend.run("own", tracked, [], retry_for=0.0)[1]
    (reply,) = backend.run_each([("own", tracked, [])])
    assert isinstance(reply, list)
    assert tracked.key("marks").encode() == reply[1]


def test_a_script_goes_over_several_shards(server: Server, queue_name: str, linker: Linker, write: Write) -> None:
    """The names of its keys hold those of one shard after the other."""
    write("read/own", "--! each meta due\nlocal seen = {}\nfor _ in shards do seen[#seen + 1] = due end\nreturn seen")
    group = ShardGroup(tuple(ShardRef(queue_name, 3, index) for index in range(3)))

    answer = run(server, linker.script("own"), group)

    assert [shard.key("due").encode() for shard in group.shards] == answer


def test_what_is_needed_rarely_is_defined_when_it_is_asked_for(
    server: Server, queue_name: str, linker: Linker, write: Write
) -> None:
    """What it needs itself comes with it, but for what the script has already."""
    write(
        "drain/own",
        "--! keys due\n--! needs early\n--! rarely late\nreturn {early(), rarely().late(), rarely().late()}",
    )
    write(
        "include/early", "--! gives early\nlocal count = 0\nlocal function early() count = count + 1 return count end"
    )
    write("include/late", "--! gives late\n--! needs early later\nlocal function late() return early() + later() end")
    write("include/later", "--! gives later\nlocal function later() return 10 end")
    write("push/other", "--! keys due\n--! needs early\nreturn early()")

    code = linker.script("own")

    assert [1, 12, 13] == run(server, code, ShardRef(queue_name, 1, 0))
    assert 1 == code.source.count("function early")
    assert "rarely" not in linker.script("other").source


def test_an_include_that_needs_itself_is_refused(linker: Linker, write: Write) -> None:
    """There is no order in which such includes work."""
    write("drain/own", "--! keys due\n--! needs one\nreturn one()")
    write("include/one", "--! gives one\n--! needs other\nlocal function one() return other() end")
    write("include/other", "--! gives other\n--! needs one\nlocal function other() return one() end")

    with pytest.raises(ValueError, match="'one' needs itself"):
        linker.script("own")


def test_calls_of_a_holder_carry_no_key_that_they_do_not_use() -> None:
    """A renewal touches the lease and its note, and is given two keys; a push is given those of what waits."""
    shard = ShardRef("queue", 1, 0)

    assert ("meta", "lease") == script("renew").keys
    assert 2 == evalsha(script("renew"), shard, [])[2]
    assert not {"errors", "groups", "morgue", "lease", "damaged", "journal"} & {*script("enqueue").keys}
    assert len(script("enqueue").keys) <= 12
    assert len(script("settle").keys) <= 19


@pytest.mark.parametrize(
    ("shape", "reply"),
    [
        (SettleReply, [b"OK", b"", b""]),
        (SettleReply, [b"OK", b"", b"", b"", b"more"]),
        (SettleReply, [b"OK", b"", b"", 1]),
        (AcquireReply, [b"OK", b"7", b"0", [], b"", b""]),
        (AcquireReply, [b"OK", b"7", 0, [1], b"", b""]),
        (ShardStateReply, [b""] * 6),
        (ShardStateReply, b"OK"),
    ],
)
def test_a_reply_has_just_the_parts_that_its_shape_names(shape: type[ReplyShape], reply: object) -> None:
    """Neither fewer nor more of them, each of its type."""
    with pytest.raises(ValueError, match="Expected"):
        shape.of(reply)


def test_a_script_that_answers_otherwise_is_taken_for_damage(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """What cannot be read by names is never read by position: the call says which shard it is about."""

    def shorter(name: str, features: tuple[str, ...] = ()) -> Script:
        code = script(name, features)
        if name != "shard_state":
            return code
        return msgspec.structs.replace(code, source="return {'', '', 0}", sha="0" * 40)

    monkeypatch.setattr(reader_module, "script", shorter)

    with pytest.raises(ShardDamaged):
        probe(desk.app.core.backend, desk.app.core.queues.agreed(desk.worker).shards, retry_for=0.0)


def test_each_script_has_room_for_ten_names_more_on_shards_that_use_everything(server: Server) -> None:
    """Lua has room for 200 locals in a function: the next helper of an include must not break the scripts of others."""
    names = [file.stem for folder in _FOLDERS for file in (LUA / folder).glob("*.lua")]
    fuller = {name: with_more_names(script(name, tuple(FEATURES)).source, 10) for name in names}

    shas = {name: server.admin.script_load(script(name, tuple(FEATURES)).source) for name in names}
    refused = {name: error for name, text in fuller.items() if (error := refusal(server, text))}

    assert {*_FOLDERS, "include"} == {folder.name for folder in LUA.iterdir()}
    assert len(names) > 70
    assert {name: script(name, tuple(FEATURES)).sha for name in names} == shas
    assert {} == refused
    assert "more than 200 local variables" in refusal(server, with_more_names("local call = redis.call", 201))


def test_what_is_needed_rarely_has_room_to_reach_five_names_more(server: Server) -> None:
    """A function may reach 60 names outside of it, and the library of a script is one."""
    names = [file.stem for folder in _FOLDERS for file in (LUA / folder).glob("*.lua")]
    sources = {name: script(name, tuple(FEATURES)).source for name in names}
    reaching = {name: with_more_reached(text, 5) for name, text in sources.items() if LIBRARY in text}

    refused = {name: error for name, text in reaching.items() if (error := refusal(server, text))}

    assert {"acquire", "enqueue", "fire", "repair", "settle"} <= {*reaching}
    assert {} == refused
    assert "more than 60 upvalues" in refusal(server, with_more_reached(f"local call = redis.call\n{LIBRARY}end", 61))


LIBRARY = "rarely = function()\n"


def with_more_names(source: str, count: int) -> str:
    """The script with so many locals more, and as many in the function that defines what it needs rarely."""
    more = "".join(f"local spare_{number}\n" for number in range(count))
    first = "local call = redis.call"
    return source.replace(first, f"{first}\n{more}", 1).replace(LIBRARY, LIBRARY + more)


def with_more_reached(source: str, count: int) -> str:
    """The script with so many locals more, which the function that defines what it needs rarely mentions."""
    first = "local call = redis.call"
    spare = ", ".join(f"spare_{number}" for number in range(count))
    return source.replace(first, f"{first}\nlocal {spare}", 1).replace(LIBRARY, f"{LIBRARY}local _ = {{{spare}}}\n")


def refusal(server: Server, source: str) -> str:
    """Why the server does not compile the script; empty where it does."""
    try:
        server.admin.script_load(source)
    except ResponseError as error:
        return str(error)
    return ""


def test_a_local_of_an_include_takes_no_name_of_its_scripts(
    server: Server, queue_name: str, linker: Linker, write: Write
) -> None:
    """An include has as many locals as it likes: outside of it there are those that other files mention."""
    own = [f"local own_{number} = {number}" for number in range(150)]
    lines = [
        "--! gives LARGE total add",
        "--! keys due",
        *own,
        "local LARGE, count = 7, 0",
        "local total",
        "total = LARGE + own_149",
    ]
    functions = ["local function add(n) count = count + n; return count + total end"]
    write("include/sums", "\n".join([*lines, *functions]))
    others = [f"local other_{number} = {number}" for number in range(150)]
    write(
        "include/more",
        "\n".join(
            [
                "--! keys meta",
                "--! gives both",
                "--! needs sums",
                *others,
                "local function both() return add(1) + add(1) end",
            ]
        ),
    )
    write("drain/own", "--! keys due\n--! needs more sums\nreturn {both(), LARGE, total}")

    code = linker.script("own")

    assert [157 + 158, 7, 156] == run(server, code, ShardRef(queue_name, 1, 0))


def test_a_script_knows_which_features_in_use_it_was_not_given(
    write: Write, linker: Linker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a shard may have begun to use, and the script would see to, is named; what does not concern it is not."""
    monkeypatch.setattr("lowkiq_lambda.store.shard.scripts.IN_USE", ("stamps", "rates"))
    write(
        "drain/own", "--! keys due\n--! with stamps mark\nreturn {due, has_stamps, lacking ~= nil and lacking.stamps}"
    )
    write("drain/other", "--! keys due\nreturn {due, lacking ~= nil}")
    write("include/mark", "--! gives mark\n--! keys tags\nlocal function mark() return tags end")

    assert "local lacking = {stamps = true}" in linker.script("own").source
    assert "lacking = {" not in linker.script("own", ("stamps",)).source
    assert "lacking = {" not in linker.script("other").source
