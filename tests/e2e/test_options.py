"""The deployed stack with its options on: schedules by command, fan-out, continuation, waking, callers with claims."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from http.client import HTTPConnection
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from botocore.exceptions import ClientError

from local.replay.jobs import ApplyChanges, CountItems
from lowkiq_lambda.jobs.job import shard_for
from lowkiq_lambda.stack.costs.bills import tick_log
from lowkiq_lambda.stack.costs.month import Month
from tests.e2e.issuer import AUDIENCE, issuer, token
from tests.e2e.stack import BY_HAND, LAST, QUEUE, Stack
from tests.kit.servers.cloud import REGION
from tests.kit.servers.ports import HOST
from tests.kit.serving import Served
from tests.kit.waiting import eventually

ROOT = Path(__file__).parents[2]
SHARDS = ApplyChanges.shards_count
APP = "local.replay.jobs:app"
STATS = "api/v1/stats"
INVOKE = {
    "Version": "2012-10-17",
    "Statement": [{"Effect": "Allow", "Action": "execute-api:Invoke", "Resource": "*"}],
}
ITEMS = 300
"""More items of a long job than three drains get done in a row: each takes a twentieth of a second."""

pytestmark = [
    pytest.mark.timeout(400),  # where it runs alone, it has the packages built and the stack deployed
    pytest.mark.nightly("the stack without options is deployed in each check"),
]


def run(stack: Stack, *words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Python as an operator or a producer runs it: with the stack's Redis, and with rights in its account."""
    variables = {**os.environ, **stack.cloud.environment, "LOWKIQ_REDIS_URL": stack.redis_url, **environment}
    return subprocess.run(
        [sys.executable, *words], cwd=ROOT, env=variables, capture_output=True, text=True, timeout=120, check=False
    )


def test_the_schedules_command_takes_over(stack: Stack) -> None:
    """By the stack's outputs the command makes what the template made, once; without the template's none is missing."""
    command = ("-m", "lowkiq_lambda", "stack", "schedules", APP, "--stack", stack.deployment.name)
    of_the_template = stack.schedule("shard-0")

    planned, done, again = (run(stack, *command, *how) for how in (["--dry-run"], ["--yes"], ["--yes"]))
    stack.deployment.update(ShardSchedules="none")
    try:
        made = {name: stack.schedule(name, stack.own_group) for name in stack.schedules_of(stack.own_group)}
    finally:
        stack.delete_group(stack.own_group)

    assert [1, 0, 0] == [said.returncode for said in (planned, done, again)], done.stdout + done.stderr
    assert "5 to create, 0 to update, 0 to delete" in planned.stdout
    assert "Nothing to do: 5 schedules are as they should be." in again.stdout
    assert "has schedules of its own" in done.stderr
    assert {f"{stack.deployment.name}-shard-{shard}" for shard in range(SHARDS)} == made.keys()
    first = made[f"{stack.deployment.name}-shard-0"]
    assert [of_the_template[field] for field in ("Target", "ScheduleExpression")] == [
        first[field] for field in ("Target", "ScheduleExpression")
    ]
    assert {"minute"} == stack.schedules


def test_one_schedule_drains_all_shards(stack: Stack) -> None:
    """With `ShardSchedules=false` the minute's invocation ticks, and drains what is due in any shard."""
    stack.deployment.update(ShardSchedules="false")
    paths = [stack.push(shard) for shard in range(SHARDS)]

    assert {"minute"} == stack.schedules
    with stack.fired_now("minute"):
        stack.wait_until_done(*range(SHARDS))

    assert [1] * SHARDS == [stack.newest(path) for path in paths]

    def ticks() -> list[dict[str, Any]]:
        return [line for line in stack.lines_of("drain") if line.get("message") == "drained" and "tick" in line]

    # The work is done before the invocation has ended and its log is there.
    last = eventually(ticks, timeout=60, what="the line of the tick")[-1]
    assert {"queues"} <= last["tick"].keys()


def test_shards_are_drained_when_the_expression_says(stack: Stack) -> None:
    """One schedule for all obeys `ScheduleExpression`, and the tick comes each minute; indexes are refused."""
    stack.deployment.update(ShardSchedules="false", ScheduleExpression="rate(5 minutes)")
    drain, minute = (stack.schedule(name) for name in ("drain", "minute"))
    with pytest.raises(ClientError, match="ShardIndexes names the shards that ShardSchedules=true gives a schedule"):
        stack.schedule_shards(range(8))
    stack.deployment.update(ScheduleExpression="rate(1 minute)")

    assert ("rate(5 minutes)", "{}") == (drain["ScheduleExpression"], drain["Target"]["Input"])
    assert ("cron(* * * * ? *)", '{"tick": "only"}') == (minute["ScheduleExpression"], minute["Target"]["Input"])
    assert {"minute"} == stack.schedules


def test_a_queue_has_a_schedule_of_its_own(stack: Stack) -> None:
    """With `QueueSchedules` that one drains it, whole, and the schedule of all leaves it out."""
    name = ApplyChanges.queue_name
    stack.deployment.update(ShardSchedules="false", QueueSchedules=name)
    paths = [stack.push(shard) for shard in range(SHARDS)]
    answer = stack.invoke("Drain", {"tick": True})

    with stack.fired_now(f"queue-{name}"):
        stack.wait_until_done(*range(SHARDS))
    found = stack.schedules
    stack.deployment.update(QueueSchedules="")

    assert ({"minute", f"queue-{name}"}, {"minute"}) == (found, stack.schedules)
    assert name not in answer["queues"]
    assert [1] * SHARDS == [stack.newest(path) for path in paths]


def ticked(stack: Stack, times: int) -> list[dict[str, Any]]:
    """Tick so often; what the function logs of it."""

    def told() -> list[dict[str, Any]]:
        return [line for line in stack.lines_of("drain") if "_aws" in line or line.get("message") == "drained"]

    before = len(told())
    for _ in range(times):
        stack.invoke("Drain", {"tick": True})
    eventually(lambda: len(told()) >= before + 2 * times, timeout=30, what="the lines of ticks")
    return told()[before:]


def test_an_idle_minute_logs_what_is_paid_for(stack: Stack) -> None:
    """What the calculator says of lines and bytes is what the deployed function logs."""
    # The first drains what was pushed before, and is no idle one.
    ticked(stack, 1)
    stack.wait_until_done(*range(SHARDS))

    lines = ticked(stack, 3)

    size = sum(len(json.dumps(line, separators=(",", ":"))) + 1 for line in lines)
    said = 3 * tick_log(Month(jobs=0))
    assert 3 * 2 == len(lines)
    assert size <= said <= 1.4 * size


@pytest.fixture(scope="module")
def optioned(stack: Stack) -> Stack:
    """The stack with every way to start a drain but the schedules; its drains have four seconds each."""
    stack.invoke("Drain", {})
    stack.wait_until_done(*range(SHARDS))
    stack.deployment.update(
        ShardSchedules="false",
        ScheduleState="DISABLED",
        Idle="start",
        WakeOnPush="true",
        DrainTimeout="14",
        DrainReserve="10",
    )
    return stack


def test_a_push_wakes_the_deployed_drain(optioned: Stack) -> None:
    """With `LOWKIQ_WAKE_FUNCTION` a producer elsewhere has its job done at once, with no schedule in between."""
    path = f"woken/{uuid4().hex}"
    job = {"id": path, "payload": [1, None]}
    producer = f"from local.replay.jobs import ApplyChanges; ApplyChanges.push_many([{job}])"

    said = run(optioned, "-c", producer, LOWKIQ_WAKE_FUNCTION=optioned.deployment.outputs["DrainFunctionName"])

    assert (0, "") == (said.returncode, said.stderr)
    eventually(lambda: optioned.newest(path), timeout=60, what="the drain that the push started")
    optioned.wait_until_done(shard_for(path, SHARDS))


def test_a_tick_starts_drains_and_they_go_on(optioned: Stack) -> None:
    """One tick starts a drain for each shard with work; one that runs out of time starts its successor.

    A long job goes on from each to the next, and none of its items is done twice.
    """
    before = optioned.metrics_of(CountItems)
    CountItems.push_many([{"id": "all", "payload": ITEMS}])
    path = optioned.push(BY_HAND)

    told = optioned.invoke("Drain", {"tick": "only"})

    assert {"due": 2, "started": 2} == told["drains"]
    eventually(lambda: optioned.newest(path), timeout=60, what="the drain of the shard with a short job")

    def said(message: str) -> list[dict[str, Any]]:
        return [line for line in optioned.lines_of("drain") if line.get("message") == message]

    def ends() -> list[dict[str, Any]]:
        return [line for line in said("drained") if line["counts"].get("checkpointed")]

    def generations() -> list[int]:
        # What an invocation logs after its end of work may come later than what its successor logs.
        return sorted(line["generation"] for line in said("the drain goes on"))

    eventually(lambda: ends()[2:], timeout=90, what="the end of three drains, one after the other")
    eventually(lambda: generations()[1:], timeout=30, what="the lines of two successors")
    assert ["out of time"] * 3 == [line["reason"] for line in ends()[:3]]
    assert [1, 2] == generations()[:2]

    def is_done() -> bool:
        optioned.invoke("Drain", {"queue": CountItems.queue_name})
        return optioned.metrics_of(CountItems).done > before.done

    eventually(is_done, timeout=120, what="the end of the long job")
    assert [1] * ITEMS == optioned.counted(ITEMS)


def test_only_the_templates_rights_let_it_do_so(optioned: Stack) -> None:
    """Without its policy a tick starts nothing, and says why: what it did before, the template let it do."""
    role = optioned.deployment.resources["DrainRole"]
    optioned.cloud.client("iam").delete_role_policy(RoleName=role, PolicyName="drain")
    optioned.push(LAST)

    with pytest.raises(AssertionError, match=r"grant the role lambda:InvokeFunction"):
        optioned.invoke("Drain", {"tick": "only"})


def test_callers_who_sign_need_no_password(optioned: Stack) -> None:
    """With `DashboardClaims=iam` a signed request comes in by the rule on its user; no other passes."""
    with user(optioned, "operator", INVOKE) as known, user(optioned, "stranger", INVOKE) as stranger:
        optioned.deployment.update(DashboardClaims="iam", DashboardOperators="userArn=*:user/operator-*")

        found = [ask(optioned, signed(optioned, caller)) for caller in (None, stranger, known)]

    assert [403, 401, 200] == [status for status, _ in found]
    assert QUEUE in found[-1][1]


def test_callers_with_a_token_need_no_password(optioned: Stack) -> None:
    """With `DashboardClaims=jwt` a token of the issuer comes in by the rule on its claims; no other passes."""
    with Served(issuer()) as served:
        optioned.deployment.update(
            DashboardClaims="jwt",
            DashboardJwtIssuer=served.origin,
            DashboardJwtAudience=AUDIENCE,
            DashboardOperators="",
            DashboardReaders="cognito:groups=support",
        )
        tokens = (
            token(served.origin, aud="another"),
            token(served.origin),
            token(served.origin, **{"cognito:groups": ["support"]}),
        )

        found = [ask(optioned, {"Authorization": f"Bearer {one}"}) for one in tokens]

    assert [401, 401, 200] == [status for status, _ in found]
    # The first is refused by API Gateway, the second by the dashboard.
    assert "Unauthorized" in found[0][1]
    assert "This token is unknown" in found[1][1]


@contextmanager
def user(stack: Stack, kind: str, policy: dict[str, Any]) -> Iterator[Credentials]:
    """A user of the account with that policy, and the credentials to sign with."""
    name = f"{kind}-{uuid4().hex[:8]}"
    iam: Any = stack.cloud.client("iam")
    iam.create_user(UserName=name)
    iam.put_user_policy(UserName=name, PolicyName="only", PolicyDocument=json.dumps(policy))
    key = iam.create_access_key(UserName=name)["AccessKey"]
    yield Credentials(key["AccessKeyId"], key["SecretAccessKey"])
    iam.delete_user_policy(UserName=name, PolicyName="only")
    iam.delete_access_key(UserName=name, AccessKeyId=key["AccessKeyId"])
    iam.delete_user(UserName=name)


def signed(stack: Stack, caller: Credentials | None) -> dict[str, str]:
    """The headers of a request for the numbers, signed by the caller; by nobody without one."""
    request = AWSRequest("GET", f"{stack.deployment.dashboard_url}{STATS}", headers={"Host": host_of(stack)})
    if caller:
        SigV4Auth(caller, "execute-api", REGION).add_auth(request)
    return dict(request.headers)


def ask(stack: Stack, headers: dict[str, str]) -> tuple[int, str]:
    """What the API's numbers are to somebody who sends these headers."""
    with closing(HTTPConnection(HOST, stack.cloud.port, timeout=60)) as connection:
        connection.request("GET", f"/{STATS}", headers={"Host": host_of(stack), **headers})
        answer = connection.getresponse()
        return answer.status, answer.read().decode()


def host_of(stack: Stack) -> str:
    """The host in the dashboard's URL, with its port."""
    return stack.deployment.dashboard_url.split("/")[2]
