"""In which order the payloads of an id may come."""

from collections.abc import Sequence


def is_in_order(executions: Sequence[Sequence[int]]) -> bool:
    """Whether payloads 1, 2, 3, ... of one id came in order: what was delivered may be again, nothing is skipped."""
    highest = 0
    for payloads in executions:
        first, last = payloads[0], payloads[-1]
        if list(payloads) != list(range(first, last + 1)) or first > highest + 1:
            return False
        highest = max(highest, last)
    return True
