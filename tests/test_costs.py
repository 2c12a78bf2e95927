"""What the calculator says a month costs, against sums that were done by hand."""

import re
import shlex
from collections.abc import Iterator
from dataclasses import replace
from itertools import chain, product
from pathlib import Path
from typing import get_args

import pytest

from lowkiq_lambda.cli import main
from lowkiq_lambda.cli.costs.bills import (
    ALARMS,
    REDIS,
    Bill,
    Month,
    Redis,
    container_bill,
    dollars,
    lambda_bill,
    sqs_bill,
    tasks,
)
from lowkiq_lambda.cli.costs.comparison import ROWS, WAYS, Comparison, first
from lowkiq_lambda.cli.costs.prices import BadPrice, Price, changed, changed_by_file, load

ROOT = Path(__file__).parents[1]
PRICES = load()


def price(value: float, per: float = 1, free: float = 0) -> Price:
    """Dollars for that many of something."""
    return Price(dollars=value, per=per, unit="pieces", source="made up", read="2026-11", free=free)


def amounts(bill: Bill) -> dict[str, float]:
    """What a bill holds, without its rows."""
    return dict(chain.from_iterable(row.items() for row in bill.values()))


def every_bill() -> Iterator[Bill]:
    """Of each way, with each kind of Redis."""
    return (way(Month(redis=redis)) for way, redis in product(WAYS.values(), get_args(Redis)))


def printed(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """What the program prints with these arguments."""
    assert 0 == main(["costs", *arguments])
    return capsys.readouterr().out


def refused(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """What the program complains about, as one line of blanks and words."""
    assert 2 == main(["costs", *arguments])
    complaint = capsys.readouterr()
    assert not complaint.out
    return " ".join(complaint.err.split())


def test_an_amount_costs_its_share_of_the_price() -> None:
    """Three of what is one dollar for two cost one and a half, and nothing where five are free."""
    assert 1.5 == price(1, per=2).of(3, free_tier=True)
    assert 0 == price(1, per=2, free=5).of(3, free_tier=True)
    assert 1 == price(1, per=2, free=5).of(7, free_tier=True)
    assert 3.5 == price(1, per=2, free=5).of(7, free_tier=False)


def test_a_row_is_the_sum_of_what_stands_in_it() -> None:
    """Two metrics at three dollars and one alarm at four are ten."""
    bill = {"watching": {"metrics": 2.0, "alarms": 1.0}, "nothing": dict[str, float]()}

    assert {"watching": 10, "nothing": 0} == dollars(bill, {"metrics": price(3), "alarms": price(4)})


def test_an_idle_stack_on_lambda() -> None:
    """43,800 minutes: visits of one shard every other minute, a tick every minute, two environments all the time."""
    used = amounts(lambda_bill(Month(jobs=0, shards=1, schedule_minutes=2, memory=1024, dashboard_requests=0)))

    assert used == pytest.approx(
        {
            "lambda_requests": 21_900 + 43_800,
            "lambda_gigabyte_seconds": 65_700 * 0.020 + 2 * 365 * 1.0,
            "scheduler_invocations": 65_700,
            "http_api_requests": 0,
            "log_gigabytes": 65_700 * 1_300 / 1e9,
            "log_gigabyte_months": 65_700 * 1_300 / 1e9,
            "metrics": 15,
            "alarms": 9,
            "cache_gigabyte_hours": 73,
            "cache_ecpu": 65_700 * 20,
        }
    )


def test_work_on_lambda_is_paid_by_its_seconds() -> None:
    """A million jobs of 10 ms are 10,000 s, of half a gigabyte each; each batch of ten is settled, and told."""
    idle, busy = (amounts(lambda_bill(Month(jobs=jobs))) for jobs in (0, 1_000_000))

    more = {name: used - idle[name] for name, used in busy.items()}

    assert more == pytest.approx(
        {
            **dict.fromkeys(more, 0),
            "lambda_gigabyte_seconds": 5_000,
            "log_gigabytes": 0.045,
            "log_gigabyte_months": 0.045,
            "metrics": 10,
            "cache_ecpu": 5_000_000,
        },
        abs=1e-6,
    )


def test_short_batches_are_settled_together() -> None:
    """A million jobs of 1 ms in batches of ten: not 100,000 settlings, but one for each 50 ms."""
    idle, busy = (amounts(lambda_bill(Month(jobs=jobs, job_seconds=0.001))) for jobs in (0, 1_000_000))

    assert busy["log_gigabytes"] - idle["log_gigabytes"] == pytest.approx(20_000 * 450 / 1e9)


def test_handlers_side_by_side_are_paid_by_the_time_that_they_share() -> None:
    """A million jobs of 50 ms: 20 side by side are busy 94 % of the time, until the processor is the limit."""
    one, twenty, thousand = (
        Month(jobs=1_000_000, job_seconds=0.05, job_cpu=0.0008, memory=1_769, concurrency=concurrency)
        for concurrency in (1, 20, 1_000)
    )

    assert [50_000, 50_000 / 18.8, 1_000] == pytest.approx([one.running, twenty.running, thousand.running])


def test_a_small_function_has_its_share_of_a_processor() -> None:
    """512 MB have 0.29 processors: a millisecond of computing takes 3.5 ms there."""
    month = Month(jobs=1_000, job_seconds=0.01, job_cpu=0.0008, memory=512, concurrency=100)

    assert 1_769 / 512 == pytest.approx(month.running)


def test_containers_with_handlers_side_by_side_are_limited_by_their_processor() -> None:
    """A month has 2,628,000 seconds, of which half may be used, with a quarter of a processor."""
    month = Month(jobs=10**9, job_seconds=0.05, job_cpu=0.0008, concurrency=1_000)

    assert 4 == tasks(month)
    assert 8 == tasks(replace(month, concurrency=1))


def test_seldom_visits_are_cold_starts() -> None:
    """Every ten minutes each visit of the 4,380 starts an environment, for a second; only the tick's stays warm."""
    used = amounts(lambda_bill(Month(jobs=0, shards=1, schedule_minutes=10, memory=1024, dashboard_requests=0)))

    assert used["lambda_gigabyte_seconds"] == pytest.approx((4_380 + 43_800) * 0.020 + 4_380 + 365)


def test_the_dashboard_is_paid_by_its_requests() -> None:
    """Ten of them are ten for the API, ten for Lambda, and a second of time."""
    without, with_ten = (amounts(lambda_bill(Month(memory=1024, dashboard_requests=number))) for number in (0, 10))

    more = {name: used - without[name] for name, used in with_ten.items() if used != without[name]}

    assert more == pytest.approx({"lambda_requests": 10, "lambda_gigabyte_seconds": 1, "http_api_requests": 10})


def test_a_container_is_paid_by_its_hours() -> None:
    """730 hours of a quarter of a processor, half a gigabyte and an address, and a look at five shards a second."""
    assert amounts(container_bill(Month(jobs=10))) == pytest.approx(
        {
            "fargate_vcpu_hours": 182.5,
            "fargate_gigabyte_hours": 365,
            "ipv4_hours": 730,
            "cache_gigabyte_hours": 73,
            "cache_ecpu": 2_628_000 * 5 * 2 + 10 * 5,
        }
    )


def test_more_work_takes_more_containers() -> None:
    """One has five threads that work half of 2,628,000 s; what is more by a second needs another one."""
    assert [1, 1, 2] == [tasks(Month(jobs=jobs, job_seconds=1)) for jobs in (0, 6_570_000, 6_570_001)]
    assert 1_460 == amounts(container_bill(Month(jobs=6_570_001, job_seconds=1)))["ipv4_hours"]


def test_sqs_is_paid_by_its_requests() -> None:
    """A thousand messages, ten in a request however large the batch; an idle queue is asked 657,000 times a month."""
    assert amounts(sqs_bill(Month(jobs=1_000, batch=25, memory=1024, queues=2))) == pytest.approx(
        {
            "lambda_requests": 100,
            "lambda_gigabyte_seconds": 10 + 100 * 0.005 + 2 * 365,
            "sqs_fifo_requests": 300 + 2 * 657_000,
            "log_gigabytes": 100 * 450 / 1e9,
            "log_gigabyte_months": 100 * 450 / 1e9,
            "alarms": 6,
        }
    )


def test_each_price_stands_once_in_a_bill() -> None:
    """Else its free tier would be taken off twice. No price is missing, none is there for nothing."""
    used = [list(chain.from_iterable(bill.values())) for bill in every_bill()]

    assert [] == [names for names in used if len(set(names)) < len(names)]
    assert set(PRICES) == set(chain.from_iterable(used))


def test_every_row_of_a_bill_is_shown() -> None:
    """The table leaves nothing out that is paid for."""
    assert {*ROWS, REDIS} == set(chain.from_iterable(every_bill()))


def test_the_assumed_alarms_are_those_of_the_template() -> None:
    """An alarm more costs ten cents more; those of the ways in are made with the first of these, one is asked for."""
    found = re.findall(
        r"Type: AWS::CloudWatch::Alarm\n(?:    Condition: (\w+)\n)?", (ROOT / "template.yaml").read_text()
    )
    alarms = [condition for condition in found if condition != "WatchesHeld"]

    assert ALARMS == len([condition for condition in alarms if condition not in {"Ingests", "HasInbox", "TakesStream"}])
    assert f"{len(alarms) - int(ALARMS)} alarms" in (ROOT / "docs" / "ingest.md").read_text()


def test_every_price_has_a_source_and_a_date() -> None:
    """Who reads the table can look up how old it is."""
    assert [] == [name for name, one in PRICES.items() if not re.fullmatch(r"20\d\d-[01]\d", one.read)]
    assert [] == [name for name, one in PRICES.items() if not re.match(r"(AWS|Amazon) \w+", one.source)]


def test_the_columns_add_up() -> None:
    """With prices of whole dollars: what stands in a column's rows is its total, with and without Redis."""
    dear = {name: price(1) for name in PRICES}

    table = Comparison(Month(), dear).table().splitlines()[2:]
    columns = zip(
        *([cell.strip(" *$").replace(",", "") for cell in line.split("|")[2:-1]] for line in table), strict=True
    )

    for *rows, without, redis, total in ([float(cell or 0) for cell in column] for column in columns):
        assert without == pytest.approx(sum(rows), abs=0.1)
        assert total == pytest.approx(without + redis, abs=0.1)


def test_the_verdict_names_the_cheapest_and_where_a_container_is_cheaper(capsys: pytest.CaptureFixture[str]) -> None:
    """SQS at these prices; a container where it costs nothing, and nowhere where it costs a fortune."""
    assert "The cheapest is SQS FIFO and Lambda, with $" in printed(capsys)

    free = printed(capsys, "--price=fargate_vcpu_hours=0", "--price=fargate_gigabyte_hours=0", "--price=ipv4_hours=0")
    assert "visits from 1 job on, and from 1 shard on." in free

    dear = printed(capsys, "--price", "ipv4_hours=1e9", "--job-seconds=0")
    assert "visits for no number of jobs, and for no number of shards." in dear


@pytest.mark.parametrize(("least", "found"), [(0, 1), (1, 1), (42, 42), (100, 100), (101, None)])
def test_the_first_number_that_will_do_is_found(least: int, found: int | None) -> None:
    """From one to the last, and none where none does."""
    assert found == first(lambda number: number >= least, 100)


def test_options_change_what_is_asked(capsys: pytest.CaptureFixture[str]) -> None:
    """Each of them reaches the table; a Redis that is there already costs nothing."""
    usual = printed(capsys)
    options = [
        "--jobs=2_000_000",
        "--job-seconds=0.02",
        "--batch=5",
        "--shards=6",
        "--queues=2",
        "--schedule-minutes=2",
        "--memory=1024",
        "--dashboard-requests=2000000",
        "--redis=node",
        "--redis=none",
        "--free-tier",
        "--price=metrics=0.33",
    ]

    tables = [printed(capsys, option) for option in options]

    assert len({usual, *tables}) == 1 + len(options)
    assert "| Redis that is there already | $0.00 | $0.00 |  |" in printed(capsys, "--redis=none")


def test_prices_come_from_a_file(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """It names those that differ, in the fields that differ; an option comes after it."""
    file = tmp_path / "frankfurt.toml"
    file.write_text('[metrics]\ndollars = 100\nread = "2027-01"\n[alarms]\ndollars = 0\n')

    shown = printed(capsys, "--prices", str(file), "--price", "alarms=7", "--list-prices")

    assert "| metrics | 100 | 1 | custom metrics | 10 | Amazon CloudWatch, quoted | 2027-01 |" in shown
    assert "| alarms | 7 | 1 | alarms | 10 | Amazon CloudWatch, quoted | 2026-11 |" in shown
    assert PRICES["metrics"] != changed_by_file(PRICES, file)["metrics"]


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ("--jobs=many", "--jobs many is refused: give a whole number from 0 to 1000000000000."),
        ("--jobs=-1", "--jobs -1 is refused: give a whole number from 0 to"),
        ("--jobs=2e12", "--jobs 2e12 is refused: give a whole number from 0 to"),
        ("--jobs=nan", "--jobs nan is refused: give a whole number from 0 to"),
        ("--job-seconds=nan", "--job-seconds nan is refused: give a number from 0 to 1e+12."),
        ("--jobs=1.5", "--jobs 1.5 is refused: give a whole number from 0 to"),
        ("--shards=0", "--shards 0 is refused: give a whole number from 1 to 10000."),
        ("--memory=64", "--memory 64 is refused: give a whole number from 128 to 10240."),
        ("--redis=mine", 'Invalid value "mine" for --redis. Choose from: "serverless", "node", "none".'),
        ("--price=metrics", "--price metrics is refused: expected NAME=VALUE, such as metrics=0.33."),
        ("--price=metrics=cheap", "--price metrics=cheap is refused: 'cheap' is not a finite number."),
        ("--price=metrics=-1", "--price metrics=-1 is refused: a price is at least 0."),
        ("--price=metric=1", "There is no price 'metric'; there are alarms, cache_ecpu,"),
        ("--prices=missing.toml", "The prices in missing.toml cannot be read: "),
        (
            "--jobs=1000000000 --job-seconds=1",
            "1,000,000,000 jobs of 1 s are 1,000,000,000 s of work. The visits have room for 13,140,000 s: give more",
        ),
        ("--jobs=70_000 --job-seconds=100 --schedule-minutes=30", "The visits have room for 6,570,000 s"),
    ],
)
def test_bad_input_is_refused_with_a_sentence(
    capsys: pytest.CaptureFixture[str], arguments: str, complaint: str
) -> None:
    """It names the option, what was given and what would do, and prints no table."""
    assert complaint in refused(capsys, *shlex.split(arguments))


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"metrics": 1}, r"'metrics' needs fields, such as dollars = 0\.30, and not 1"),
        ({"metrics": {"dollars": "1"}}, "'metrics' is refused: dollars must be a number of at least 0"),
        ({"metrics": {"dollars": -1}}, "'metrics' is refused: dollars must be a number of at least 0"),
        ({"metrics": {"dollars": float("nan")}}, "'metrics' is refused: dollars must be a number of at least 0"),
        ({"metrics": {"dollars": float("inf")}}, "'metrics' is refused: Expected a finite number"),
        ({"metrics": {"dollar": 1}}, "'metrics' is refused: Object contains unknown field `dollar`"),
        ({"metrics": {"per": 0}}, "'metrics' is refused: per must be a number above 0"),
    ],
)
def test_a_price_that_is_none_is_refused(change: dict[str, object], complaint: str) -> None:
    """By its name, with what is wrong with it."""
    with pytest.raises(BadPrice, match=complaint):
        changed(PRICES, change)


def test_a_file_that_is_no_toml_is_refused(tmp_path: Path) -> None:
    """The sentence has its path."""
    file = tmp_path / "prices.toml"
    file.write_text("metrics = [")

    with pytest.raises(BadPrice, match=re.escape(f"The prices in {file} cannot be read: ")):
        changed_by_file(PRICES, file)


def test_the_help_teaches(capsys: pytest.CaptureFixture[str]) -> None:
    """It says what is compared, what is left out and what is usual, and its examples work."""
    text = printed(capsys, "--help")
    # A narrow terminal breaks lines within the boxes.
    words = " ".join(text.replace("│", " ").split())
    examples = re.findall(r"^    lowkiq costs (.*)$", text, re.MULTILINE)

    assert all(
        word in words
        for word in (
            "Fargate",
            "SQS FIFO",
            "Not in it: ",
            "[default: 1000000]",
            "[default: 0.01]",
            "[default: serverless]",
        )
    )
    assert 6 == len(examples)
    assert [] == [one for one in examples if "frankfurt" not in one and "| ---" not in printed(capsys, *one.split())]


def test_what_concurrency_saves_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    """A million jobs that wait 50 ms: their time on Lambda one by one, 10 and 50 side by side; nothing without jobs."""
    *_, told = printed(capsys, "--job-seconds=0.05").splitlines()

    costs = "$0.333 with concurrency 1, $0.035 with concurrency 10, $0.012 with concurrency 50"
    assert f"The handlers' time on Lambda costs {costs}." == told
    assert "The handlers' time" not in printed(capsys, "--jobs=0")


def test_the_readme_shows_what_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    """The table and the sentences below it, as `lowkiq costs` prints them."""
    assert printed(capsys) in (ROOT / "README.md").read_text()


@pytest.mark.parametrize(
    ("page", "name", "phrase"),
    [
        ("infra/elasticache.md", "cache_gigabyte_hours", "${} for a GB-hour"),
        ("infra/elasticache.md", "cache_ecpu", "${} for a million ECPU"),
        ("infra/elasticache.md", "cache_node_hours", "${} an hour"),
        ("docs/waking.md", "lambda_gigabyte_seconds", "${} a GB-second"),
    ],
)
def test_the_docs_have_the_same_prices(page: str, name: str, phrase: str) -> None:
    """A price that changes is changed there too."""
    text = " ".join((ROOT / page).read_text().split())

    assert phrase.format(f"{PRICES[name].dollars:.10f}".rstrip("0")) in text
