"""What is sent, kept in memory."""

from collections.abc import Iterator

import pytest

from tests.kit.collecting import Collected, SentToSentry, sentry_of_test


@pytest.fixture
def collected() -> Iterator[Collected]:
    """Providers of this test alone, and what they got."""
    made = Collected()
    yield made
    made.shut_down()


@pytest.fixture
def sentry() -> Iterator[SentToSentry]:
    """A client of this test alone whose transport keeps what it is given."""
    with sentry_of_test() as sent:
        yield sent
