"""What a worker may declare about limits: each refusal is a sentence, before anything runs."""

import math
from typing import Any

import pytest

import lowkiq_lambda
from lowkiq_lambda import DeclarationError, Lowkiq, Rate, Worker
from lowkiq_lambda.declare.worker import queues_before


def declare(app: Lowkiq, name: str = "Odd", **body: Any) -> type[Worker]:
    """A worker of that name, declared with these fields."""
    worker: type[Worker] = app.worker(type(name, (Worker,), {"perform": lambda _self, _batch: None, **body}))
    return worker


def refusal(app: Lowkiq, **body: Any) -> str:
    """What is said about a worker with these fields."""
    with pytest.raises(DeclarationError) as raised:
        declare(app, **body)
    return str(raised.value)


@pytest.mark.parametrize(
    ("field", "value", "why"),
    [
        ("max_running", 0, "Odd.max_running must not be 0, which would let nothing run: pause the queue for that."),
        ("max_running", -1, "Odd.max_running must be a whole number from 1 to 100,000, not -1."),
        ("max_running", 2.0, "Odd.max_running must be a whole number from 1 to 100,000, not 2.0."),
        ("max_running", True, "Odd.max_running must be a whole number from 1 to 100,000, not True."),
        ("rate", 100, "Odd.rate must be a Rate, as in Rate(100, per=60), not 100."),
        ("waits_for", "Imports", "Odd.waits_for must be a tuple of queue names: write ('Imports',)."),
        ("waits_for", ["Imports"], "Odd.waits_for must be a tuple of queue names, not ['Imports']."),
        ("waits_for", (1,), "Odd.waits_for must be a tuple of queue names, not (1,)."),
        ("block_except", "Imports", "Odd.block_except must be a tuple of queue names: write ('Imports',)."),
        ("block_except", True, "Odd.block_except must be a tuple of queue names, not True."),
        ("weight", 0, "Odd.weight must be a number from 0.001 to 1,000, not 0."),
        ("weight", math.inf, "Odd.weight must be a number from 0.001 to 1,000, not inf."),
        ("weight", math.nan, "Odd.weight must be a number from 0.001 to 1,000, not nan."),
        ("weight", "2", "Odd.weight must be a number from 0.001 to 1,000, not '2'."),
        ("tenants", "all", 'Odd.tenants must be "spread", "home" or None, not \'all\'.'),
        ("tenants", ["home"], 'Odd.tenants must be "spread", "home" or None, not [\'home\'].'),
        ("tenant_rate", (2, 1), "Odd.tenant_rate must be a Rate, as in Rate(100, per=60), not (2, 1)."),
    ],
)
def test_a_limit_that_cannot_work_is_refused(app: Lowkiq, field: str, value: object, why: str) -> None:
    """X-30: the sentence names the field and the value."""
    assert why == refusal(app, **{field: value})


@pytest.mark.parametrize("tenants", [None, "spread"])
def test_a_rate_of_tenants_needs_their_home(app: Lowkiq, tenants: str | None) -> None:
    """Where each shard counts for itself, a tenant would have as many times the rate as there are shards."""
    why = refusal(app, tenants=tenants, tenant_rate=Rate(2, per=1))

    assert why.startswith('Odd.tenant_rate needs tenants = "home"')


@pytest.mark.parametrize(
    ("ids", "per", "why"),
    [
        (0, 60, "Rate(0, per=60) would let nothing begin: pause the queue for that."),
        (-1, 60, "The ids of a Rate must be a whole number from 1 to 9,007,199,254,740,992, not -1."),
        (1.5, 60, "The ids of a Rate must be a whole number from 1 to 9,007,199,254,740,992, not 1.5."),
        (False, 60, "The ids of a Rate must be a whole number from 1 to 9,007,199,254,740,992, not False."),
        (1, 0, "per of a Rate must be seconds from 0.1 to 100 years, not 0."),
        (1, 0.05, "per of a Rate must be seconds from 0.1 to 100 years, not 0.05."),
        (1, math.inf, "per of a Rate must be seconds from 0.1 to 100 years, not inf."),
        (1, "60", "per of a Rate must be seconds from 0.1 to 100 years, not '60'."),
    ],
)
def test_a_rate_that_cannot_work_is_refused(ids: Any, per: Any, why: str) -> None:
    """X-30: it is refused where it is written."""
    with pytest.raises(DeclarationError) as raised:
        Rate(ids, per=per)

    assert why == str(raised.value)


def test_limits_are_taken(app: Lowkiq) -> None:
    """X-30: a class and a function declare all of them."""
    rate = Rate(100, per=60)
    declare(app, "Imports")
    tenants: dict[str, Any] = {"tenants": "home", "tenant_rate": Rate(2, per=0.5)}
    declare(app, max_running=3, rate=rate, waits_for=("Imports",), weight=2, **tenants)

    @app.worker(max_running=1, rate=rate, waits_for=("Odd",), weight=0.5, tenants="spread")
    def send_mail(_batch: object) -> None:
        """Nothing."""

    assert [(None, None), (3, rate), (1, rate)] == [(worker.max_running, worker.rate) for worker in app.workers]
    assert {"Odd": 2, "send_mail": 0.5} == app.core.drains.drainer.weights


@pytest.mark.parametrize(
    ("attribute", "value", "option"),
    [
        ("max_runing", 3, "max_running"),
        ("rates", Rate(1, per=1), "rate"),
        ("wait_for", ("Imports",), "waits_for"),
        ("blocks_except", ("Imports",), "block_except"),
        ("weights", 2.0, "weight"),
        ("tenant", "home", "tenants"),
        ("tenants_rate", Rate(1, per=1), "tenant_rate"),
    ],
)
def test_a_limit_that_is_misspelt_is_refused(app: Lowkiq, attribute: str, value: object, option: str) -> None:
    """It would limit nothing, and nobody would be told."""
    assert f"Odd.{attribute} is not an option: did you mean {option}?" == refusal(app, **{attribute: value})


def test_x32_nothing_waits_for_itself(app: Lowkiq) -> None:
    """X-32: the last of a circle of waits is refused, with the way round; waits that meet again are none."""
    assert "Odd.waits_for would never let it run: 'Odd' waits for 'Odd'." == refusal(app, waits_for=("Odd",))
    declare(app, "A", waits_for=("B", "C"))
    declare(app, "B", waits_for=("D",))
    declare(app, "C", waits_for=("D",))

    assert "'D' waits for 'A' waits for 'C' waits for 'D'." in refusal(app, queue_name="D", waits_for=("E", "A"))


def test_x32_of_two_queues_that_block_each_other_one_has_to_except_the_other(app: Lowkiq) -> None:
    """X-32: else none would ever run; those that name each other are a group for which all the rest waits."""
    declare(app, "A", block_except=("B",))

    why = refusal(app, queue_name="C", block_except=())
    assert "Odd.waits_for and block_except would never let it run: 'C' waits for 'A' waits for 'C'." == why
    assert "'C' waits for 'A' waits for 'C'." in refusal(app, queue_name="C", block_except=("B",))
    declare(app, "B", block_except=("A",))
    declare(app, "D")
    assert [("A", ()), ("B", ()), ("D", ("A", "B"))] == [
        (worker.queue_name, queues_before(worker)) for worker in app.workers
    ]


def test_x32_an_unknown_exception_is_refused(app: Lowkiq) -> None:
    """X-32: a misspelt one would wait, and nobody would be told."""
    declare(app, "B", block_except=("Aa",))
    declare(app, "A")

    with pytest.raises(DeclarationError, match=r"B\.block_except names 'Aa', and the app declares no such queue"):
        app.drain()


def test_x32_a_wait_for_an_unknown_queue_is_refused(app: Lowkiq) -> None:
    """X-32: when all workers are declared, at the first drain; the order of declarations is free."""
    declare(app, "B", waits_for=("A", "Aa"))
    declare(app, "A")

    with pytest.raises(DeclarationError, match=r"B\.waits_for names 'Aa', and the app declares no such queue: .* B, A"):
        app.drain()


def test_the_package_has_no_names_that_it_has_not() -> None:
    """What it imports late does not hide what is misspelt."""
    assert not hasattr(lowkiq_lambda, "Rates")
