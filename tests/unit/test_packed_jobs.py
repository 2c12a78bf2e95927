"""The packed job of a push: one byte of flags, what they announce, and the payload."""

import re
import struct

import pytest

from lowkiq_lambda.store.shard.chunks import (
    HAS_EXPIRY,
    HAS_HEADERS,
    HAS_MORE,
    HAS_PERFORM_IN,
    HAS_RECEIPT,
    HAS_REF,
    HAS_SCORE,
    IS_DEFAULT,
    packed,
)
from lowkiq_lambda.store.shard.scripts import script

SCORE = bytes(range(8))


@pytest.mark.parametrize(
    ("score", "due_at", "flags"),
    [(None, None, 0), (SCORE, None, HAS_SCORE), (None, 7.5, HAS_PERFORM_IN), (SCORE, 7.5, HAS_SCORE | HAS_PERFORM_IN)],
)
def test_flags_announce_what_follows(score: bytes | None, due_at: float | None, flags: int) -> None:
    """Each optional part has a bit of its own and stands in the order of the bits; a plain job pays one byte."""
    time = b"" if due_at is None else struct.pack(">d", due_at)

    assert bytes((flags,)) + (score or b"") + time + b"payload" == packed(score, due_at, b"payload")


def test_both_sides_have_the_same_bits() -> None:
    """The script reads the flags that Python sets, and each is one bit."""
    (names, values) = re.findall(r"^local (HAS_[A-Z_, ]+) = ([0-9, ]+)$", script("enqueue").source, re.MULTILINE)[0]
    bits = dict(zip(names.split(", "), map(int, values.split(", ")), strict=True))

    assert {
        "HAS_SCORE": HAS_SCORE,
        "HAS_PERFORM_IN": HAS_PERFORM_IN,
        "HAS_REF": HAS_REF,
        "HAS_RECEIPT": HAS_RECEIPT,
        "HAS_HEADERS": HAS_HEADERS,
        "HAS_EXPIRY": HAS_EXPIRY,
        "IS_DEFAULT": IS_DEFAULT,
        "HAS_MORE": HAS_MORE,
    } == bits
    assert all(bit.bit_count() == 1 for bit in bits.values())
