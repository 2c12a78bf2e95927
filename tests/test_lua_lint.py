"""The check of the Lua scripts: each kind of fault is found where it is planted, with its line."""

import subprocess
import sys

import pytest

from lint.lua import faults, texts_of
from lint.lua_parser import read_names
from lint.lua_tokens import LuaSyntaxError

TEXTS = texts_of()


def planted(path: str, old: str, new: str) -> list[str]:
    """What is wrong once a part of a script has become another."""
    assert old in TEXTS[path]
    return [str(fault) for fault in faults({**TEXTS, path: TEXTS[path].replace(old, new, 1)})]


def test_make_lint_runs_the_check_and_nothing_is_wrong() -> None:
    """The scripts as they are pass, by the command that `scripts/lint` runs."""
    ran = subprocess.run([sys.executable, "-m", "lint.lua"], capture_output=True, text=True, check=False)

    assert (0, "") == (ran.returncode, ran.stdout)


def test_a_removed_include_is_found() -> None:
    """Its names are missing where they are used, and the message says where they are."""
    found = planted("drain/renew.lua", " lease ", " ")

    assert any(fault.endswith("'hold' is not defined, but in include/lease.lua") for fault in found)


def test_an_include_of_an_include_has_to_be_declared_too() -> None:
    """What another include happens to bring along is no declaration."""
    found = planted("include/morgue.lua", " put ", " ")

    assert any("'box_prefix' is not defined, but in include/put.lua" in fault for fault in found)


def test_an_include_that_is_removed_from_those_needed_rarely_is_found() -> None:
    """A name behind `rarely()` is looked for as any other."""
    found = planted("drain/settle.lua", " outcomes", "")

    assert any("rarely().settle_named is not defined, but in include/outcomes.lua" in fault for fault in found)


@pytest.mark.parametrize(
    ("path", "old", "new", "fault"),
    [
        ("drain/unwake.lua", "return {'OK'}", "return {OK}", "'OK' is not defined"),
        ("drain/unwake.lua", "return {'OK'}", "local more = 1\nreturn {'OK'}", "'more' is not used"),
        (
            "include/claim.lua",
            "local function set_many(key, ",
            "local function set_many(key, extra, ",
            "'extra' is not used",
        ),
        (
            "include/claim.lua",
            "local records, found = {}, {}",
            "local records, found, idle = {}, {}",
            "'idle' is not used",
        ),
        ("drain/unwake.lua", "--! keys meta", "--! keys meta due", "the key 'due' is declared and not used"),
        ("drain/unwake.lua", "--! keys meta", "--! keys", "the key 'meta' is used and not declared"),
        ("drain/unwake.lua", "--! keys meta", "--! keys meta mata", "'mata' is not a key of a shard"),
        ("drain/unwake.lua", "return {'OK'}", "return {'OK', KEYS[1]}", "'KEYS' is not defined"),
        ("drain/unwake.lua", "needs shard", "needs shard page", "the include 'page' is needed and not used"),
        ("drain/unwake.lua", "needs shard", "needs shard pages", "the include 'pages' does not exist"),
        (
            "drain/settle.lua",
            "rarely claim_reply",
            "rarely claim_reply page",
            "the include 'page' is needed rarely and not used",
        ),
        ("include/let_go.lua", "local function", "local function idle() end\nlocal function", "'idle' is not used"),
        ("include/let_go.lua", "local function", "local function hold() end\nlocal function", "'hold' is defined in"),
        ("include/turn.lua", "--! gives turn", "--! gives", "'turn' is used elsewhere and not given"),
        ("include/turn.lua", "--! gives turn", "--! gives turn back", "'back' is given and not defined"),
        ("include/journal.lua", "gives MOST", "gives append MOST", "'append' is given and not used elsewhere"),
        ("read/counts.lua", "--! each", "--! keys", "'shards' is not defined"),
    ],
)
def test_a_planted_fault_is_found(path: str, old: str, new: str, fault: str) -> None:
    """Names, keys and includes: what is used has to be there and declared, and what is there has to be used."""
    assert any(fault in found for found in planted(path, old, new))


def test_a_script_that_jobs_pay_for_defines_no_idle_function() -> None:
    """A function that another script needs is no business of a push or a drain."""
    found = faults(
        {**TEXTS, "drain/renew.lua": "--! needs page put\n" + TEXTS["drain/renew.lua"] + "\npage(box_prefix)"}
    )

    assert any("the function 'box_remove' of include/put.lua is defined and not used" in fault.what for fault in found)


@pytest.mark.parametrize(
    ("text", "takes", "unused"),
    [
        ("local a = 1 a = 2", [], []),
        ("local function f() local a a = 2 end", [], ["a"]),
        ("function t.m(x) return self end", ["t", "self"], ["x"]),
        ("return {due = due, [key] = 1; more}", ["due", "key", "more"], []),
        ("repeat local done = f() until done", ["f"], []),
        ("for k, _v in pairs(t) do end", ["pairs", "t"], ["k"]),
        ("for i = 1, n do f(i) end", ["n", "f"], []),
        ("if a then local x = 1 elseif b then return x else c() end", ["a", "b", "x", "c"], ["x"]),
        ("local f = function(...) return ... end return f'x':y{1}.z[[w]]", [], []),
        ("do local x = -1 .. not #x end -- y\n--[[ z ]] while true do break end", ["x"], ["x"]),
        ("local function f() local x = 1 local x = x return x end", [], []),
    ],
)
def test_names_are_read_by_the_scopes_of_lua(text: str, takes: list[str], unused: list[str]) -> None:
    """A local is known from the end of its statement to the end of its block, a field of a table never."""
    names = read_names(text)

    assert takes == [*names.takes]
    assert unused == [name for name, _ in names.unused]


@pytest.mark.parametrize(
    "text", ["local = 1", "if a then", "f(", "for a do end", "return {1 2}", "x = 'y", "end", "a @ b"]
)
def test_what_is_no_lua_is_refused(text: str) -> None:
    """A script that the server would refuse is found here."""
    with pytest.raises(LuaSyntaxError, match="line 1"):
        read_names(text)
