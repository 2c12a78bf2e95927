"""Mapping functions: how they are declared, and which one is called."""

from collections.abc import Iterator
from typing import Any

import pytest

from lowkiq_lambda import DeclarationError, Incoming, Lowkiq
from lowkiq_lambda.declare.ingest import MappingFunctions, NoMappingFunction

ARN = "arn:aws:sqs:eu-west-1:123456789012:orders-eu"


def from_source(source: str, via: str | None = None) -> Incoming:
    """Something that came from there."""
    return Incoming(kind="sqs", source=source, id="1", time=0.0, via=via)


def chosen(app: Lowkiq, source: str, via: str | None = None) -> str:
    """The name of the function that is called."""
    return app.core.registry(MappingFunctions).for_source(from_source(source, via)).__name__


@pytest.fixture
def app() -> Lowkiq:
    """One with a function for each of two patterns, and one for all others."""
    app = Lowkiq()

    @app.ingest
    def others(_record: Incoming) -> None:
        pass

    @app.ingest("orders-*")
    def orders(_record: Incoming) -> None:
        pass

    @app.ingest("arn:aws:sqs:*:123456789012:reports")
    def reports(_record: Incoming) -> None:
        pass

    return app


@pytest.mark.parametrize(
    ("source", "name"),
    [
        (ARN, "orders"),
        ("orders-bucket", "orders"),
        ("arn:aws:sqs:us-east-1:123456789012:reports", "reports"),
        ("arn:aws:sqs:us-east-1:123456789012:invoices", "others"),
        ("Orders-eu", "others"),
    ],
)
def test_the_function_whose_pattern_fits_is_called(app: Lowkiq, source: str, name: str) -> None:
    """By ARN or by name; the one without a pattern is for all others."""
    assert name == chosen(app, source)


@pytest.mark.parametrize("via", ["orders-eu", "orders-*", ARN])
def test_what_came_by_a_queue_is_for_functions_that_name_the_queue(app: Lowkiq, via: str) -> None:
    """Its sender wrote the source; a function that names the queue is given what comes directly, too."""

    @app.ingest("invoices", via=via)
    def invoices(_record: Incoming) -> None:
        pass

    assert ["invoices", "invoices"] == [chosen(app, "invoices", ARN), chosen(app, "invoices")]
    assert [True, False] == [
        app.core.registry(MappingFunctions).unwraps(queue) for queue in (ARN, ARN.replace("orders", "stock"))
    ]
    for source in ("orders-bucket", "anything"):
        with pytest.raises(NoMappingFunction, match=f"No mapping function is for '{source}' by the queue '{ARN}'"):
            chosen(app, source, ARN)


def test_a_function_for_all_sources_may_name_a_queue() -> None:
    """It is given whatever a notification in that queue tells of, and nothing of another queue."""
    app = Lowkiq()

    @app.ingest(via="orders-eu")
    def others(_record: Incoming) -> None:
        pass

    assert ["others", "others"] == [chosen(app, "any bucket", ARN), chosen(app, "any bucket")]
    with pytest.raises(NoMappingFunction):
        chosen(app, "any bucket", f"{ARN}-2")


@pytest.mark.parametrize(
    ("target", "via", "why"),
    [("reports", "", "is empty"), (print, "reports", "not both at once")],
)
def test_a_queue_that_cannot_be_named_is_refused(target: Any, via: str, why: str) -> None:
    """When the function is declared."""
    app: Any = Lowkiq()
    with pytest.raises(DeclarationError, match=why):
        app.ingest(target, via=via)


@pytest.mark.parametrize(("pattern", "queues", "why"), [("", None, "ARN or the name"), ("a", "b", "a list of names")])
def test_what_cannot_be_an_inbox_is_refused(pattern: str, queues: Any, why: str) -> None:
    """When it is declared, not with the first message."""
    with pytest.raises(DeclarationError, match=why):
        Lowkiq().inbox(pattern, queues=queues)


def test_two_patterns_that_fit_are_an_error(app: Lowkiq) -> None:
    """Nobody guesses which is meant: the error names both and the source."""
    app.ingest("*-eu")(print)

    with pytest.raises(NoMappingFunction, match=r"'orders-\*' and '\*-eu' of @app.ingest both fit 'arn:aws:sqs"):
        chosen(app, ARN)


@pytest.mark.parametrize(("pattern", "there_are"), [(None, "declare one with"), ("stock", "the patterns are 'stock'")])
def test_a_source_that_no_pattern_fits_is_an_error(pattern: str | None, there_are: str) -> None:
    """It names the source and the patterns there are."""
    app = Lowkiq()
    if pattern:
        app.ingest(pattern)(print)

    with pytest.raises(NoMappingFunction, match=f"No mapping function is for 'arn:aws:sqs.*: {there_are}"):
        chosen(app, ARN)


async def coroutine(_record: Incoming) -> None:
    """What nobody would await."""


def without_arguments() -> None:
    """What cannot be given a record."""


@pytest.mark.parametrize(
    ("target", "why"),
    [
        (7, "takes a function, or a pattern for one, not 7"),
        ("", "is empty"),
        (coroutine, "coroutine is a coroutine function: write def"),
        (without_arguments, "without_arguments cannot be called with a record"),
    ],
)
def test_what_cannot_be_a_mapping_function_is_refused(target: Any, why: str) -> None:
    """When it is declared, not with the first record."""
    with pytest.raises(DeclarationError, match=why):
        Lowkiq().ingest(target)


@pytest.mark.parametrize(("pattern", "which"), [(None, "without a pattern"), ("orders-*", r"for 'orders-\*'")])
def test_a_second_function_for_the_same_is_refused(app: Lowkiq, pattern: str | None, which: str) -> None:
    """One pattern has one function."""
    with pytest.raises(DeclarationError, match=f"There is a mapping function {which} already"):
        app.ingest(pattern)(print) if pattern else app.ingest(print)


def test_a_mapping_function_stays_what_it_is() -> None:
    """It can be called by a test, with an Incoming that the test makes."""
    app = Lowkiq()

    @app.ingest("orders")
    def orders(record: Incoming) -> Iterator[Any]:
        yield app, {"id": record.id}

    assert [(app, {"id": "1"})] == [*orders(from_source("orders"))]
