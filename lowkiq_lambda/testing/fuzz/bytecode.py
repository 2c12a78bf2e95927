"""The bytecode at a line: whether it leaves a block, or handles an exception.

An exception plays the death of a process, so its code goes on to run: a real death runs no `finally` and no `except`,
but the system gives back what the process holds. So each further line raises the death again, but where a block is
left, where an exception is compared with the types of an `except`, and at a `pass` at the end of one.
"""

import dis
from functools import cache
from itertools import pairwise
from types import CodeType
from typing import Final, Literal, TypeAlias

Doing: TypeAlias = Literal["compares", "catches", "has caught", "unwinds"]
_DOES: Final[dict[str, Doing]] = {
    "CHECK_EXC_MATCH": "compares",
    "CHECK_EG_MATCH": "compares",
    # The exception is over: behind an `except`, or at a `return` in a `finally`.
    "POP_EXCEPT": "catches",
    "RERAISE": "unwinds",
    "RAISE_VARARGS": "unwinds",
    "RETURN_VALUE": "unwinds",
    "RETURN_CONST": "unwinds",
}

_PASSING: Final = frozenset(("NOP", "SWAP", "CACHE"))
"""Instructions that may come before a block is left."""


def exits_of(code: CodeType) -> frozenset[int]:
    """Where the code comes to the line of a `with` statement once more, to leave its block, or leaves an `except`.

    No exception can come between the end of a block and its exit: raised there, it would skip the exit, so that a lock
    stayed held, or an exception that is over stayed the one that is handled.
    """
    instructions = [*dis.get_instructions(code)]
    names = [(one.opname, one.argval) for one in instructions]
    exits = set[int]()
    for at, one in enumerate(instructions):
        then = next((after for after in range(at, len(names)) if names[after][0] not in _PASSING), len(names))
        leaves = names[then : then + 3] == [("LOAD_CONST", None)] * 3 and names[then + 3][0] in {"PRECALL", "CALL"}
        fails = [name for name, _ in names[at : at + 2]] == ["PUSH_EXC_INFO", "WITH_EXCEPT_START"]
        goes_on = [name for name, _ in names[at : at + 3]] == ["COPY", "POP_EXCEPT", "RERAISE"]
        if leaves or fails or goes_on:
            exits.add(one.offset)
    return frozenset(exits)


@cache
def doing_at(code: CodeType, offset: int) -> Doing:
    """What the line at this offset does with the exception that is being handled there."""
    names = [one.opname for one in dis.get_instructions(code) if one.offset >= offset]
    if names[:1] == ["POP_EXCEPT"]:
        return "has caught"
    for name, then in pairwise((*names, "")):
        # The exception goes on from there, after an exception within an `except`.
        if name in _DOES and (name, then) != ("POP_EXCEPT", "RERAISE"):
            return _DOES[name]
    return "unwinds"
