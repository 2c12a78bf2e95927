"""What errors that are alike share."""

import time
from typing import Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lowkiq_lambda.base.fingerprint import LINE, fingerprint
from tests.kit.examples import examples

PIECES: Final = [*"ab1f0'\"`#:/-. @=(\\,xTZ5\r\n\ud800é[{+?_", "http://", "HTTP ", "status ", "Error: ", "429", "'a'"]
PIECES_OF_VALUES: Final = ["2026-01-02T03:04", "deadbeef1", "0x1f", "u:p@h", "550e8400-e29b-41d4-a716-446655440000"]
HOSTILE: Final = [
    *("'", "''a", "a'", "[", "1,", "1.", "http://", "http://@", "a@", "deadbeef", "deadbeef-", "12345678-1234-", "0x"),
    *("2026-01-01T", "-", " -1", "a+.-", "a.", "://", "\"'`", "HTTP/", "status", "f", "9", "\n", "#", "'#", "a b"),
]
"""What a pattern may find in many ways, over and over."""
LONGEST: Final = 0.05
"""Processor seconds for one text: some hundred times what the worst of them takes on a fast machine."""


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (
            "HTTPError: 429 Too Many Requests for url https://u:pw@api.x.com/v1/labels/8812?a=1",
            "HTTPError: 429 Too Many Requests for url https://api.x.com/#",
        ),
        ("ValueError: order 345 has 12 lines\n  File ...", "ValueError: order # has # lines"),
        ("KeyError: 'SKU-17'", "KeyError: '#'"),
        ('KeyError: "it\'s"', "KeyError: '#'"),
        ("KeyError: 'amount_cents'", "KeyError: 'amount_cents'"),
        ("shop.Gone: 550e8400-e29b-41d4-a716-446655440000 of deadbeef01", "shop.Gone: # of #"),
        ("Closed: <Session object at 0x7f3a9c>", "Closed: <Session object at #>"),
        ("Late: due 2026-11-24T04:00:42.5+01:00, 3 days ago", "Late: due #, # days ago"),
        ("Refused: redis://:pass@word@cache:6379/0", "Refused: redis://cache:6379/#"),
        ("UnicodeError: utf8 and sha256 stay", "UnicodeError: utf8 and sha256 stay"),
        ("TimeoutError", "TimeoutError"),
        ("", ""),
    ],
)
def test_values_that_differ_each_time_become_a_sign(text: str, words: str) -> None:
    """Numbers, dates, hex, UUIDs, quoted values and paths go; the type and a quoted name stay; a password does not."""
    assert words == fingerprint(text).words


@pytest.mark.parametrize(
    "before", ["HTTPError: ", "Api: HTTP ", "Api: HTTP/1.1 ", "Api: status code: ", "Error: ", "("]
)
def test_statuses_of_http_are_errors_of_different_kinds(before: str) -> None:
    """A throttled call is not a broken server; other numbers there are alike."""
    assert fingerprint(f"{before}429 for 17") == fingerprint(f"{before}429 for 18")
    assert fingerprint(f"{before}429 for 17") != fingerprint(f"{before}503 for 17")
    assert fingerprint(f"{before}4290 for 17") == fingerprint(f"{before}5030 for 17")


@settings(max_examples=examples(500))
@given(st.lists(st.sampled_from(PIECES + PIECES_OF_VALUES), max_size=60).map("".join) | st.text(max_size=2 * LINE))
def test_a_fingerprint_of_words_is_the_fingerprint(text: str) -> None:
    """The words of a fingerprint have the same one, and are no longer than a line, whatever the text is."""
    found = fingerprint(text)

    assert found == fingerprint(found.words)
    assert len(found.words) <= LINE
    assert (16, True) == (len(found.digits), set(found.digits) <= set("0123456789abcdef"))


@pytest.mark.parametrize("piece", HOSTILE)
@pytest.mark.parametrize("length", [LINE, 100_000])
def test_no_text_takes_long(piece: str, length: int) -> None:
    """A message may come from anybody: no repetition makes the search for values go back and forth."""
    text = (piece * length)[:length]
    begun = time.process_time()

    fingerprint(f"Broken: {text}")

    assert time.process_time() - begun < LONGEST
