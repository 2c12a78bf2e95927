"""What the code of a dead process does at its next line: an exception plays the death, so code goes on to run.

A real death runs no `finally` and no `except`. So each further line raises the death again, but for lines that compare
the exception with the types of an `except`, and a `pass` at the end of one, where an exception would skip the exit.
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
