"""What the calculator says a month costs, against sums that were done by hand."""

import re
import shlex
from collections.abc import Iterator
from dataclasses import replace
from itertools import chain, product
from pathlib import Path
from typing import Any, get_args

import pytest

from lowkiq_lambda.cli import main
from lowkiq_lambda.cli.stack.costs import ON_INSTANCES, ROWS, WAYS, Comparison, first
from lowkiq_lambda.simulate.choice import LOOK
from lowkiq_lambda.stack.costs.bills import (
    ALARMS,
    ALARMS_OF_A_QUEUE_FUNCTION,
    BUSY_LOG,
    BUSY_VISIT_LOG,
    FAILURE_LOG,
    INSTANCES,
    METRICS_LOG,
    REDIS,
    SETTLE_LOG,
    TICK_LOG,
    VISIT_LOG,
    Bill,
    bus_bill,
    container_bill,
    dollars,
    instances_bill,
    minute_bill,
    shards_bill,
    sqs_bill,
    tasks,
)
from lowkiq_lambda.stack.costs.month import Month, Redis, WayOut
from lowkiq_lambda.stack.costs.prices import BadPrice, Price, changed, changed_by_file, load

ROOT = Path(__file__).parents[1]
PRICES = load()


def price(value: float, per: float = 1, free: float = 0) -> Price:
    """Dollars for that many of something."""
    return Price(dollars=value, per=per, unit="pieces", source="made up", read="2026-11", free=free)


def amounts(bill: Bill) -> dict[str, float]:
    """What a bill holds, without its rows."""
    return dict(chain.from_iterable(row.items() for row in bill.values()))


def every_bill() -> Iterator[Bill]:
    """Of each way, with each kind of Redis, and each way out of a VPC."""
    kinds = product([*WAYS.values(), *ON_INSTANCES.values()], get_args(Redis), get_args(WayOut))
    return (way(Month(redis=redis, way_out=out, secrets=1, kms_keys=1)) for way, redis, out in kinds)


def printed(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """What the program prints with these arguments."""
    assert 0 == main(["stack", "costs", *arguments])
    return capsys.readouterr().out


def refused(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """What the program complains about, as one line of blanks and words."""
    assert 2 == main(["stack", "costs", *arguments])
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
    """43,800 minutes: an invocation in each, one environment all the time, two metrics, and alarms on six."""
    used = amounts(minute_bill(Month(jobs=0, memory=1024, dashboard_hours=0)))
    size = 43_800 * (TICK_LOG + METRICS_LOG["summary"][0]) / 1e9

    assert used == pytest.approx(
        {
            "lambda_requests": 43_800,
            "lambda_gigabyte_seconds": 43_800 * LOOK + 365 * 1.0,
            "scheduler_invocations": 43_800,
            "http_api_requests": 0,
            "log_gigabytes": size,
            "log_gigabyte_months": size,
            "metrics": 2,
            "alarms": 6,
            "cache_gigabyte_hours": 73,
            "cache_ecpu": 43_800 * 20,
        }
    )


def test_shards_with_schedules_of_their_own_cost_a_visit_each() -> None:
    """Of one shard every other minute: 21,900 invocations more, and an environment more all the time."""
    month = Month(jobs=0, shards=1, schedule_minutes=2, memory=1024, dashboard_hours=0, metrics="none")
    one, own = amounts(minute_bill(month)), amounts(shards_bill(month))

    more = {name: used - one[name] for name, used in own.items() if used != one[name]}

    assert more == pytest.approx(
        {
            "lambda_requests": 21_900,
            "lambda_gigabyte_seconds": 21_900 * LOOK + 365 * 1.0,
            "scheduler_invocations": 21_900,
            "log_gigabytes": 21_900 * VISIT_LOG / 1e9,
            "log_gigabyte_months": 21_900 * VISIT_LOG / 1e9,
            "cache_ecpu": 21_900 * 20,
        }
    )


def test_an_idle_stack_costs_little_more_than_a_dollar_a_month() -> None:
    """With a Redis that is there already, and a page of the dashboard that is open for an hour a week."""
    bill = dollars(minute_bill(Month(jobs=0, redis="none")), PRICES)
    without = dollars(minute_bill(Month(jobs=0, redis="none", metrics="none")), PRICES)

    assert 1.30 >= sum(bill.values())
    assert 0.57 >= sum(without.values())


def test_work_on_lambda_is_paid_by_its_seconds() -> None:
    """A million jobs of 10 ms are 10,000 s, of a quarter of a gigabyte each; each minute's line tells of its work."""
    idle, busy = (amounts(minute_bill(Month(jobs=jobs))) for jobs in (0, 1_000_000))

    more = {name: used - idle[name] for name, used in busy.items()}

    assert more == pytest.approx(
        {
            **dict.fromkeys(more, 0),
            "lambda_gigabyte_seconds": 2_500,
            "log_gigabytes": 43_800 * BUSY_LOG / 1e9,
            "log_gigabyte_months": 43_800 * BUSY_LOG / 1e9,
            "cache_ecpu": 5_000_000,
        },
        abs=1e-6,
    )


def test_with_metrics_of_queues_each_settling_is_told() -> None:
    """A million jobs in batches of ten of 100 ms: a line for each; of 10 ms, one for each 50 ms."""
    slow, quick = (Month(job_seconds=seconds, metrics="queues") for seconds in (0.01, 0.001))

    for month, settles in ((slow, 100_000), (quick, 20_000)):
        idle, busy = (amounts(minute_bill(replace(month, jobs=jobs))) for jobs in (0, 1_000_000))
        lines = 43_800 * BUSY_LOG + settles * SETTLE_LOG
        assert busy["log_gigabytes"] - idle["log_gigabytes"] == pytest.approx(lines / 1e9)
        assert 10 == busy["metrics"] - idle["metrics"]


def test_a_visit_of_a_shard_tells_of_its_own_work() -> None:
    """Jobs enough for each minute's visit of five shards to find some are five lines a minute, in place of one."""
    idle, busy = (amounts(shards_bill(Month(jobs=jobs))) for jobs in (0, 1_000_000))

    assert busy["log_gigabytes"] - idle["log_gigabytes"] == pytest.approx(5 * 43_800 * BUSY_VISIT_LOG / 1e9)


def test_a_function_for_some_queues_costs_a_visit_a_minute_and_its_alarm() -> None:
    """Of 43,800 minutes, with one environment more, and its template's alarm, on three metrics."""
    none, one = (amounts(minute_bill(Month(memory=1024, queue_functions=number))) for number in (0, 1))

    more = {name: used - none[name] for name, used in one.items() if used != none[name]}

    assert more == pytest.approx(
        {
            "lambda_requests": 43_800,
            "lambda_gigabyte_seconds": 43_800 * LOOK + 365 * 1.0,
            "scheduler_invocations": 43_800,
            "log_gigabytes": 43_800 * VISIT_LOG / 1e9,
            "log_gigabyte_months": 43_800 * VISIT_LOG / 1e9,
            "alarms": 3,
            "cache_ecpu": 43_800 * 20,
        }
    )


def test_failures_are_paid_by_their_lines() -> None:
    """Each is one line, with its traceback."""
    none, many = (amounts(minute_bill(Month(failures=failures))) for failures in (0, 1_000))

    assert many["log_gigabytes"] - none["log_gigabytes"] == pytest.approx(1_000 * FAILURE_LOG / 1e9)


@pytest.mark.parametrize(
    ("options", "price_name", "amount"),
    [
        ({"secrets": 2}, "secrets", 2),
        ({"kms_keys": 1}, "kms_keys", 1),
        ({"way_out": "nat"}, "nat_hours", 730),
        ({"way_out": "endpoints", "endpoints": 3}, "endpoint_hours", 3 * 730),
    ],
)
def test_safety_is_paid_for_where_there_is_any(options: dict[str, Any], price_name: str, amount: float) -> None:
    """And IPv6 carries the same calls for nothing."""
    assert amount == amounts(minute_bill(Month(**options)))[price_name]
    assert minute_bill(Month(way_out="ipv6")) == minute_bill(Month())


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
    used = amounts(shards_bill(Month(jobs=0, shards=1, schedule_minutes=10, memory=1024, dashboard_hours=0)))

    assert used["lambda_gigabyte_seconds"] == pytest.approx((4_380 + 43_800) * LOOK + 4_380 + 365)


def test_the_dashboard_is_paid_by_its_requests() -> None:
    """An open page asks every two seconds: in an hour 1,800 times of the API, and of Lambda for a tenth of a second."""
    without, with_one = (amounts(minute_bill(Month(memory=1024, dashboard_hours=hours))) for hours in (0, 1))

    more = {name: used - without[name] for name, used in with_one.items() if used != without[name]}

    assert more == pytest.approx({"lambda_requests": 1_800, "lambda_gigabyte_seconds": 180, "http_api_requests": 1_800})


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


def test_a_bus_is_paid_by_its_events() -> None:
    """A thousand events are as many invocations; nothing is asked while there are none."""
    assert amounts(bus_bill(Month(jobs=1_000, memory=1024, queues=2))) == pytest.approx(
        {
            "lambda_requests": 1_000,
            "lambda_gigabyte_seconds": 10 + 1_000 * 0.005 + 2 * 365,
            "bus_events": 1_000,
            "log_gigabytes": 1_000 * 450 / 1e9,
            "log_gigabyte_months": 1_000 * 450 / 1e9,
            "alarms": 4,
        }
    )
    assert 0 == amounts(bus_bill(Month(jobs=0)))["lambda_gigabyte_seconds"]


def test_each_price_stands_once_in_a_bill() -> None:
    """Else its free tier would be taken off twice. No price is missing, none is there for nothing."""
    used = [list(chain.from_iterable(bill.values())) for bill in every_bill()]

    assert [] == [names for names in used if len(set(names)) < len(names)]
    assert set(PRICES) == set(chain.from_iterable(used))


def test_every_row_of_a_bill_is_shown() -> None:
    """The table leaves nothing out that is paid for."""
    assert {*ROWS, REDIS} == set(chain.from_iterable(every_bill()))


def watched(template: str) -> Iterator[tuple[str, int]]:
    """The condition of each alarm of a template, and how many metrics it looks at: each is billed as an alarm."""
    for block in re.split(r"^(?=  \w)", (ROOT / template).read_text(), flags=re.MULTILINE):
        if "Type: AWS::CloudWatch::Alarm" in block:
            found = re.search(r"^    Condition: (\w+)$", block, re.MULTILINE)
            yield found[1] if found else "", max(1, block.count("MetricStat:"))


def test_the_assumed_alarms_are_those_of_the_template() -> None:
    """A metric more that an alarm looks at costs ten cents more; those of options are made with them."""
    found = [*watched("template.yaml")]
    always = sum(metrics for condition, metrics in found if condition in {"", "SchedulesFire"})
    of_a_summary = sum(metrics for condition, metrics in found if condition == "PublishesMetrics")

    assert [ALARMS["none"], ALARMS["summary"]] == [always, always + of_a_summary]
    for name in ("queue-function", "managed-instances"):
        assert [("", ALARMS_OF_A_QUEUE_FUNCTION)] == [*watched(f"infra/{name}.yaml")]
    with_ways_in = [one for one in found if one[0] in {"Ingests", "WatchesRecords", "HasInbox", "TakesStream"}]
    ingest = (ROOT / "docs" / "ingest.md").read_text()
    assert f"{len(with_ways_in)} alarms" in ingest
    # Of the age of a FIFO inbox one, and four of a standard one.
    assert ("HasInbox", 5) in with_ways_in
    assert "that of the age of a standard inbox $0.40" in ingest


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
    assert "schedules of shards from 1 shard on, and than one schedule from 1 job on." in free

    dear = printed(capsys, "--price", "ipv4_hours=1e9", "--job-seconds=0")
    assert "schedules of shards for no number of shards, and than one schedule for no number of jobs." in dear


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
        "--queue-functions=1",
        "--schedule-minutes=2",
        "--memory=1024",
        "--dashboard-hours=2000",
        "--failures=1000000",
        "--metrics=queues",
        "--secrets=1",
        "--kms-keys=1",
        "--way-out=nat",
        "--redis=node",
        "--redis=none",
        "--free-tier",
        "--price=metrics=0.33",
    ]

    tables = [printed(capsys, option) for option in options]

    assert len({usual, *tables}) == 1 + len(options)
    assert "| Redis that is there already | $0.00 | $0.00 | $0.00 |  |  |" in printed(capsys, "--redis=none")


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
        ("--job-seconds=nan", "--job-seconds nan is refused: give a number from 0 to 1000000000000."),
        ("--jobs=1.5", "--jobs 1.5 is refused: give a whole number from 0 to"),
        ("--shards=0", "--shards 0 is refused: give a whole number from 1 to 10000."),
        ("--memory=64", "--memory 64 is refused: give a whole number from 128 to 10240."),
        ("--redis=mine", 'Invalid value "mine" for --redis. Choose from: "serverless", "node", "none".'),
        ("--price=metrics", "--price metrics is refused: expected NAME=VALUE, such as metrics=0.33."),
        ("--price=metrics=cheap", "--price metrics=cheap is refused: 'cheap' is not a finite number."),
        ("--price=metrics=-1", "--price metrics=-1 is refused: a price is at least 0."),
        ("--price=metric=1", "There is no price 'metric'; there are alarms, bus_events, cache_ecpu,"),
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
    text = printed(capsys, "--help").replace(" \\\n     ", "")
    # A narrow terminal breaks lines within the boxes.
    words = " ".join(text.replace("│", " ").split())
    examples = re.findall(r"^    lowkiq stack costs (.*)$", text, re.MULTILINE)

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
    assert 8 == len(examples)
    assert [] == [one for one in examples if "frankfurt" not in one and "| ---" not in printed(capsys, *one.split())]


def test_what_concurrency_saves_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    """A million jobs that wait 50 ms: their time on Lambda one by one, 10 and 50 side by side; nothing without jobs."""
    *_, told = printed(capsys, "--job-seconds=0.05").splitlines()

    costs = "$0.167 with concurrency 1, $0.018 with concurrency 10, $0.012 with concurrency 50"
    assert f"The handlers' time on Lambda costs {costs}." == told
    assert "The handlers' time" not in printed(capsys, "--jobs=0")


def test_the_page_of_costs_shows_what_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    """The table and the sentences below it, as `lowkiq stack costs` prints them."""
    assert printed(capsys) in (ROOT / "docs" / "costs.md").read_text()


@pytest.mark.parametrize(
    ("phrase", "more", "less"),
    [
        ("**An idle stack costs ${:.2f}**", Month(jobs=0, redis="none"), None),
        ("and it costs ${:.2f}.", Month(jobs=0, redis="none", metrics="none"), None),
        ("a busy queue\n  costs ${:.2f}", Month(metrics="queues", queues=2), Month(metrics="queues")),
        ("**twenty busy ones cost ${:.2f} more** than one", Month(queues=20), Month()),
        ("| ${:.2f} for each function of", Month(queue_functions=1), Month()),
        ("| ${:.2f} for each secret |", Month(secrets=1), Month()),
        ("| ${:.2f} for each key of your own |", Month(kms_keys=1), Month()),
        ("| ${:.2f} for each interface endpoint", Month(way_out="endpoints"), Month()),
        ("| ${:.2f} for a NAT gateway", Month(way_out="nat"), Month()),
        ("| ${:.2f}: an open page", Month(dashboard_hours=100), Month(dashboard_hours=0)),
        ("| ${:.2f}: the line of a failure", Month(failures=100_000), Month()),
    ],
)
def test_the_page_of_costs_tells_what_the_formulas_say(phrase: str, more: Month, less: Month | None) -> None:
    """Each of its figures is a bill, or what an option adds to one; of queues, their metrics alone."""
    bills = [dollars(shards_bill(month), PRICES) for month in (more, less) if month]
    row = "Metrics and alarms" if phrase.startswith("a busy queue") else None
    more_dollars, *rest = (bill[row] if row else sum(bill.values()) for bill in bills)

    assert phrase.format(more_dollars - sum(rest)) in (ROOT / "docs" / "costs.md").read_text()


def test_the_pages_tell_what_one_schedule_costs() -> None:
    """With jobs and without, beside the default; and what a shard more costs."""
    idle, busy = (sum(dollars(minute_bill(Month(jobs=jobs, redis="none")), PRICES).values()) for jobs in (0, 10**6))
    more, less = (
        sum(dollars(shards_bill(Month(jobs=0, shards=number, redis="none")), PRICES).values()) for number in (6, 5)
    )
    pages = {name: (ROOT / "docs" / f"{name}.md").read_text() for name in ("costs", "deploy", "waking")}

    assert f"the idle stack costs ${idle:.2f}, with a million jobs ${busy:.2f}," in pages["costs"]
    assert all(f"${more - less:.2f}" in text for text in pages.values())


def test_the_readme_has_figures_that_are_printed(capsys: pytest.CaptureFixture[str]) -> None:
    """The first that people read: rows of an idle stack and of a million jobs, by the template's default and by one."""
    rows = [printed(capsys, "--jobs", jobs).partition("| **without Redis** |")[2] for jobs in ("0", "1_000_000")]
    (idle, alone), (busy, busy_alone) = (re.findall(r"\$[\d.]+", row)[:2] for row in rows)
    readme = " ".join((ROOT / "README.md").read_text().split())
    _, _, parameter = (ROOT / "template.yaml").read_text().partition("\n  ShardSchedules:\n")

    assert f"a drain for each of five shards, costs {idle} a month when it is idle, and {busy} with a million" in readme
    assert f"with one drain for all shards it costs {alone} and {busy_alone} " in readme
    assert parameter.startswith('    Type: String\n    Default: "true"\n')
    assert [shards_bill, minute_bill] == list(WAYS.values())[:2]


def test_the_page_of_queue_functions_has_the_same_figure() -> None:
    """What one more costs, as the calculator says."""
    more, less = (sum(dollars(minute_bill(Month(queue_functions=number)), PRICES).values()) for number in (1, 0))

    assert f"costs ${more - less:.2f} a month" in (ROOT / "infra" / "queue-function.md").read_text()


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


def test_managed_instances_are_compared_where_their_price_is_given(capsys: pytest.CaptureFixture[str]) -> None:
    """Three instances for 730 hours, with a fee, requests, and no seconds; without a price there is no column."""
    month = Month(jobs=0, dashboard_hours=0, redis="none", metrics="none", instance_hour=0.10)
    bill = dollars(instances_bill(month), PRICES, free_tier=False)
    one = dollars(instances_bill(replace(month, instances=1)), PRICES, free_tier=False)
    text = printed(capsys, "--instance-hour", "0.10")

    assert [3 * 73.0 * 1.15, 73.0 * 1.15] == pytest.approx([bill[INSTANCES], one[INSTANCES]])
    assert f"${bill[INSTANCES]:.2f} a month" in (ROOT / "infra" / "managed-instances.md").read_text()
    assert "Lambda, time" not in bill
    assert bill["Lambda, requests"] > 0
    assert "| EventBridge FIFO and Lambda | Lambda Managed Instances |" in text
    assert "Managed Instances" not in printed(capsys)
