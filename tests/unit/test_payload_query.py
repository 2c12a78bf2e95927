"""Which payloads a search finds."""

import json

import pytest

from lowkiq_lambda.operate.inspect.payload_query import MOST_CHARACTERS, payload_query

ORDER = {
    "customer": {"id": 17, "name": "Ada Lovelace"},
    "status": "paid",
    "total": 120.5,
    "vip": True,
    "note": None,
    "zip": "17",
    "lines": [{"sku": "S7", "count": 2}, {"sku": "T9", "count": 10}],
}


@pytest.mark.parametrize(
    ("text", "matches"),
    [
        ("customer.id:17", True),
        ('customer.id:"17"', False),
        ("zip:17", True),
        ('zip:"17"', True),
        ("customer.id:17.0", True),
        ("customer.id:1", False),
        ('customer.name:"Ada Lovelace"', True),
        ("customer.name:Ada", False),
        ("lines.0.sku:S7", True),
        ("lines.1.sku:S7", False),
        ("lines.7.sku:S7", False),
        ("lines[].sku:T9", True),
        ("lines[].count>9", True),
        ("lines[].count>10", False),
        ("lines[].count>=10", True),
        ("total<120.5", False),
        ("total<=120.5", True),
        ("status>1", False),
        ("vip:true", True),
        ("vip:1", False),
        ("vip>0", False),
        ("note:null", True),
        ("note:*", True),
        ("coupon:*", False),
        ("-coupon:*", True),
        ("-status:paid", False),
        ("status:paid AND -coupon:* customer.id:17", True),
        ("status:paid customer.id:18", False),
        ("LOVELACE", True),
        ('"a lovel"', True),
        ("-lovelace", False),
        ('status:"*"', False),
    ],
)
def test_a_payload_meets_all_terms(text: str, matches: object) -> None:
    """Values compare as those of JSON, and the literal never hides a payload that meets the query."""
    query = payload_query(text)
    assert query.matches(ORDER) is matches
    if matches:
        assert query.literal in json.dumps(ORDER).lower().encode()


def test_a_literal_is_what_every_encoder_writes_alike() -> None:
    """Numbers may be written in several ways, and letters beside ASCII too: only plain letters are surely there."""
    literals = {
        "customer.id:17": b"customer",
        "a.b:17": b"a",
        'name:"Grüße aus Köln"': b"e aus k",
        "status:paid": b"status",
        "s:published": b"published",
        "-status:paid": b"",
        "1e16": b"",
        "lines[].0.x>5": b"lines",
    }
    assert {text: payload_query(text).literal for text in literals} == literals


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "1 to 8 terms, not 0"),
        ("   ", "1 to 8 terms, not 0"),
        (" ".join("abcdefghi"), "1 to 8 terms, not 9"),
        ("a" * (MOST_CHARACTERS + 1), f"at most {MOST_CHARACTERS} characters"),
        ("status:paid total>many", "total> at character 13 compares numbers, and 'many' is not one."),
        ("a..b:1", "The path at character 1 has an empty step"),
        ('name:"half', "cannot be read from character 1 on"),
        ('"\\q"', "The quoted text at character 1 is not a JSON text"),
        ("name:", "cannot be read from character 1 on"),
    ],
)
def test_a_text_that_cannot_be_a_search_is_refused_with_the_place(text: str, words: str) -> None:
    """Nothing is guessed."""
    with pytest.raises(ValueError, match=r"payload|path|character|term") as refused:
        payload_query(text)
    assert words in str(refused.value)


def test_deep_and_strange_payloads_are_searched_without_harm() -> None:
    """A search may be by anybody: it ends, whatever it names."""
    nested: object = "end"
    for _ in range(200):
        nested = {"a": [nested]}
    path = ".".join(["a[]"] * 100)
    assert not payload_query(f"{path}:end").matches(nested)
    assert payload_query("end").matches(nested)
    strange: tuple[object, ...] = (None, 0, "", [], b"\xff", "\0", {"": {"": 1}})
    for payload in strange:
        assert not payload_query("a.b:1").matches(payload)


def test_an_object_that_has_no_json_can_be_looked_at() -> None:
    """An app's codec may give one, and it may not keep the other jobs from being found."""
    assert payload_query("17").matches({17: "a", "b": 1})
    assert not payload_query("18").matches({17: "a", "b": 1})
