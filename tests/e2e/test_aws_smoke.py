"""The smoke run of an account, against the local cloud: from the deploy to the report, and what ends it early."""

import re
import shutil
from io import StringIO
from pathlib import Path

import pytest

import local.aws_smoke
from local.aws_smoke.__main__ import REFUSED, main
from local.aws_smoke.account import Account
from local.aws_smoke.report import FAILED, GOOD, NOT_SHOWN, report
from local.aws_smoke.smoke import Plan, Smoke
from local.inventory import LOGS, inventory
from tests.kit.servers import LocalCloud, Server
from tests.kit.servers.cloud import ACCOUNT, REGION

JOBS = 500

pytestmark = pytest.mark.timeout(400)  # the first has the packages built


@pytest.fixture(scope="module")
def own_packages(packages: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The packages that all tests share, with the run's app in them."""
    own = tmp_path_factory.mktemp("smoke") / "packages"
    shutil.copytree(packages, own)
    for package in own.iterdir():
        shutil.copytree(Path(local.aws_smoke.__file__).parent / "app", package, dirs_exist_ok=True)
    return own


@pytest.fixture
def cloud_for_producers(cloud: LocalCloud, monkeypatch: pytest.MonkeyPatch) -> LocalCloud:
    """The cloud is AWS for this process, too."""
    for name, value in cloud.environment.items():
        monkeypatch.setenv(name, value)
    return cloud


def things(cloud: LocalCloud) -> dict[str, set[str]]:
    """All that there is; not the log of a function that is gone: its last call may write it after its stack went."""
    kinds = inventory(cloud)
    kinds[LOGS] &= {f"/aws/lambda/{name}" for name in kinds["lambda Functions"]}
    return kinds


def plan(server: Server, *, alarm_patience: float = 0.0, **parameters: str) -> Plan:
    """A short run with a Redis that exists."""
    parameters = {"Inbox": "fifo", "RedisUrl": server.url, **parameters}
    return Plan(JOBS, parameters, makes_cache=False, starts_drains=True, alarm_patience=alarm_patience)


def test_a_run_ends_with_a_report_and_leaves_nothing(cloud_for_producers: LocalCloud, own_packages: Path) -> None:
    """It deploys, pushes, drains, moves and destroys; what a short run cannot show, it says."""
    before, said = things(cloud_for_producers), list[str]()

    with Server() as server:
        smoke = Smoke(cloud_for_producers, own_packages, plan(server), said.append)
        is_good = smoke.run()

    results = {step.name: step.result for step in smoke.steps}
    others = ("deploy stack", "push", "drain", "move shards", "measure", "destroy")
    assert {**dict.fromkeys(others, GOOD), "alarm": NOT_SHOWN} == results, said
    assert is_good
    assert before == things(cloud_for_producers)
    page = report("the local cloud", smoke.name, smoke.parameters, smoke.steps, smoke.used)
    assert page.startswith("# Smoke run on the local cloud: all is good\n")
    assert server.url not in page
    assert smoke.used.invocations > JOBS / 100
    assert 0 < sum(smoke.used.cents.values()) < 1


@pytest.mark.nightly("alarms are evaluated at the end of a minute; the death is shown in each check")
def test_an_alarm_rings_before_the_end(cloud_for_producers: LocalCloud, own_packages: Path) -> None:
    """A job that dies is in the metrics that the alarm watches."""
    with Server() as server:
        chosen = plan(server, alarm_patience=200.0)
        smoke = Smoke(cloud_for_producers, own_packages, chosen, lambda _: None)
        smoke.run()

    (alarm,) = (step for step in smoke.steps if step.name == "alarm")
    assert GOOD == alarm.result, alarm.evidence
    assert "-DeadAlarm-" in alarm.evidence


def test_a_run_that_is_broken_off_destroys_all(cloud_for_producers: LocalCloud, own_packages: Path) -> None:
    """Ctrl-C in the middle ends the steps; the end says what could not be destroyed, and destroys the rest."""
    before, said = things(cloud_for_producers), list[str]()

    def say(line: str) -> None:
        said.append(line)
        if line == "push ...":
            raise KeyboardInterrupt
        if line.startswith("destroying"):
            s3 = cloud_for_producers.client("s3")
            bucket = f"packages-{line.split()[1]}"
            for each in s3.list_objects_v2(Bucket=bucket)["Contents"]:
                s3.delete_object(Bucket=bucket, Key=each["Key"])
            s3.delete_bucket(Bucket=bucket)

    with Server() as server:
        smoke = Smoke(cloud_for_producers, own_packages, plan(server), say)
        is_good = smoke.run()

    assert not is_good
    failed = {step.name: step.evidence for step in smoke.steps if step.result == FAILED}
    assert {"push", "destroy"} == failed.keys()
    assert "KeyboardInterrupt" in failed["push"]
    assert "These could not be destroyed: lowkiq-smoke-" in failed["destroy"]
    assert "NoSuchBucket" in failed["destroy"]
    assert before == things(cloud_for_producers)


@pytest.mark.nightly("the other ends of a run are tried in each check")
def test_a_stack_is_kept_if_people_say_so(cloud_for_producers: LocalCloud, own_packages: Path) -> None:
    """The report names what goes on costing; it can be destroyed later."""

    def say(line: str) -> None:
        if line == "push ...":
            raise KeyboardInterrupt

    with Server() as server:
        chosen = plan(server)._replace(keeps=True)
        smoke = Smoke(cloud_for_producers, own_packages, chosen, say)
        smoke.run()
        there = inventory(cloud_for_producers, smoke.name)
        smoke.ending.destroy_all()

    assert NOT_SHOWN == smoke.steps[-1].result
    assert smoke.name in smoke.steps[-1].evidence
    assert {smoke.name} == there["cloudformation StackSummaries"]
    assert not any(inventory(cloud_for_producers, smoke.name).values())


def test_it_asks_before_it_begins(cloud_for_producers: LocalCloud, monkeypatch: pytest.MonkeyPatch) -> None:
    """It says whose account it is, what it will make and for how much, and without a yes it makes nothing."""
    before, questions = things(cloud_for_producers), list[str]()
    printed = StringIO()

    def answer(question: str) -> str:
        questions.append(question)
        return ""

    monkeypatch.setattr("sys.argv", ["aws_smoke"])
    monkeypatch.setattr("sys.stdout", printed)
    monkeypatch.setattr("builtins.input", answer)

    with pytest.raises(SystemExit) as ended:
        main()

    assert REFUSED == ended.value.code
    assert ["Begin? [y/N] "] == questions
    assert printed.getvalue().startswith(f"AWS, account {ACCOUNT}, {REGION}: a network, an ElastiCache Serverless, and")
    assert re.search(r"About 40 minutes and \d\.\d cents; all is destroyed at the end", printed.getvalue())
    assert before == things(cloud_for_producers)


def test_a_bucket_is_made_in_the_region_of_the_run(cloud_for_producers: LocalCloud) -> None:
    """In every region but the oldest one AWS wants to be told."""
    s3 = Account("eu-west-1").client("s3")

    s3.create_bucket(Bucket="of-the-smoke")
    place = s3.get_bucket_location(Bucket="of-the-smoke")["LocationConstraint"]
    s3.delete_bucket(Bucket="of-the-smoke")

    assert "eu-west-1" == place
    assert "of-the-smoke" not in inventory(cloud_for_producers)["s3 Buckets"]


def test_what_was_made_before_a_failure_is_destroyed(cloud_for_producers: LocalCloud, own_packages: Path) -> None:
    """The local cloud makes the network, and refuses an ElastiCache Serverless: the network goes."""
    before, networks = things(cloud_for_producers), cloud_for_producers.client("ec2")
    vpcs = networks.describe_vpcs()["Vpcs"]
    chosen = Plan(JOBS, {"Inbox": "fifo"}, makes_cache=True)

    smoke = Smoke(cloud_for_producers, own_packages, chosen, lambda _: None)
    is_good = smoke.run()

    assert not is_good
    results = [(step.name, step.result) for step in smoke.steps]
    assert [("deploy network", GOOD), ("deploy cache", FAILED), ("destroy", GOOD)] == results
    assert "AWS::ElastiCache::ServerlessCache" in smoke.steps[1].evidence
    assert vpcs == networks.describe_vpcs()["Vpcs"]
    assert before == things(cloud_for_producers)
    page = report("the local cloud", smoke.name, smoke.parameters, smoke.steps, smoke.used)
    assert page.startswith("# Smoke run on the local cloud: something FAILED\n")
