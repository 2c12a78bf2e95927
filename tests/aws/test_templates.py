"""The templates are valid, and say what the functions, the roles and the bill count on."""

import json
import re
from collections.abc import Callable, Iterator
from itertools import pairwise, product
from typing import Any, Final

import pytest

from lowkiq_lambda import Config, Worker
from lowkiq_lambda.aws import duty_task, telemetry, ticking
from lowkiq_lambda.aws.logs import METRICS
from lowkiq_lambda.dashboard import hashed
from lowkiq_lambda.dashboard.security.settings import DashboardSettings
from lowkiq_lambda.declare.worker import count_of
from lowkiq_lambda.settings.aws import Settings
from lowkiq_lambda.settings.config import variable_of
from lowkiq_lambda.stack.rollback import ALIAS
from tests.aws.alarms import chosen
from tests.kit.templates import CHECKOV, FUNCTIONS, INFRA, NOT_OURS, ROOT, run

FAILED_RECORDS: Final = "records_failed"
"""Published by the ingest function."""
ELSEWHERE: Final = {"cold_start", "batch_duration", "slowest_batch", "lag_at_start", "lag_at_end"}

FEW_CHECKS: Final = 60
"""So many pass at least where all templates are read."""

# What AWS lets nobody limit to a resource.
WITHOUT_RESOURCE: Final = {
    "ec2:AssignPrivateIpAddresses",
    "ec2:CreateNetworkInterface",
    "ec2:DeleteNetworkInterface",
    "ec2:DescribeNetworkInterfaces",
    "ec2:DescribeSubnets",
    "ec2:UnassignPrivateIpAddresses",
    "xray:PutTelemetryRecords",
    "xray:PutTraceSegments",
}

pytestmark = [pytest.mark.xdist_group("templates"), pytest.mark.timeout(600)]


def of_kind(resources: dict[str, dict[str, Any]], kind: str) -> dict[str, dict[str, Any]]:
    """The properties of all resources of one type, by name."""
    return {name: one.get("Properties", {}) for name, one in resources.items() if one["Type"] == kind}


def statements(value: object) -> Iterator[dict[str, Any]]:
    """Every statement of every policy in it."""
    if isinstance(value, dict):
        if "Effect" in value:
            yield value
        else:
            for one in value.values():
                yield from statements(one)
    elif isinstance(value, list):
        for one in value:
            yield from statements(one)


def leaves(value: object) -> Iterator[str]:
    """Every text in it."""
    if isinstance(value, dict | list):
        for one in value.values() if isinstance(value, dict) else value:
            yield from leaves(one)
    elif isinstance(value, str):
        yield value


def test_sam_takes_the_template_for_valid() -> None:
    """`sam validate --lint` has nothing to say against template.yaml, warnings of cfn-lint included."""
    done = run("sam", "validate", "--lint")

    assert 0 == done.returncode, done.stdout + done.stderr
    assert "is a valid SAM Template" in done.stdout


def test_cfn_lint_has_nothing_to_say() -> None:
    """Every other template is clean, too."""
    done = run("cfn-lint", *(str(path.relative_to(ROOT)) for path in INFRA))

    assert (0, "") == (done.returncode, done.stdout)


def test_a_review_of_an_organisation_finds_nothing() -> None:
    """Every template passes checkov; what it is not to look for has its reason beside it."""
    done = run("checkov", "-f", "template.yaml", *(str(path.relative_to(ROOT)) for path in INFRA), tools=CHECKOV)
    lines = (ROOT / ".checkov.yaml").read_text().splitlines()
    left_out = [above for above, line in pairwise(lines) if line.startswith("  - CKV")]

    assert 0 == done.returncode, done.stdout + done.stderr
    (passed,) = re.findall(r"Passed checks: (\d+), Failed checks: 0,", done.stdout)
    assert int(passed) > FEW_CHECKS
    assert "Parsing error" not in done.stdout
    assert all(above.startswith("  # ") for above in left_out)
    assert left_out


def test_every_template_of_infra_has_its_page() -> None:
    """Each says what it costs, in which region and when, and that this must be checked."""
    pages = {path.stem: path.with_suffix(".md").read_text() for path in INFRA}

    assert {"cloudwatch-dashboard", "elasticache", "fargate", "managed-instances", "network", "queue-function"} == set(
        pages
    )
    for page in pages.values():
        assert re.search(r"Prices of us-east-1 in \w+ 20\d\d, .*; check them", page)


def test_the_drain_and_its_schedules_stand_first(template: dict[str, Any]) -> None:
    """A reader of template.yaml sees first what drains and when, then the dashboard, then ways in and alarms."""
    names = list(template["Resources"])
    places = [names.index(name) for name in ("DashboardFunction", "IngestFunction", "FailureAlarm")]

    assert ["DrainFunction", "Fn::ForEach::DrainSchedules", "MinuteSchedule"] == [
        name for name in names[:7] if name not in {"DrainVersion", "DrainAlias", "DrainInvocation", "ScheduleGroup"}
    ]
    assert sorted(places) == places


def test_every_variable_is_a_setting(template: dict[str, Any], resources: dict[str, dict[str, Any]]) -> None:
    """What the template puts into the environment of a function is read there."""
    known = {variable_of(name) for kind in (Settings, Config, DashboardSettings) for name in kind.kinds()}
    given = [variables(template, resources, function) for function in FUNCTIONS]

    assert [NOT_OURS] * len(FUNCTIONS) == [set(one) - known for one in given]


@pytest.mark.parametrize(
    ("others", "own", "left_out"),
    [
        ("", "", ""),
        ("Reports,Exports", "", "-Reports,-Exports"),
        ("", "Orders,sync_user", "-Orders,-sync_user"),
        ("Reports", "Orders,sync_user", "-Reports,-Orders,-sync_user"),
    ],
    ids=["none", "of other functions", "of schedules of their own", "both"],
)
def test_queues_that_others_drain_are_left_out_one_by_one(
    template: dict[str, Any], resources: dict[str, dict[str, Any]], others: str, own: str, left_out: str
) -> None:
    """Each name gets the sign that leaves it out, and no name gives an empty variable."""
    given = resources["DrainFunction"]["Properties"]["Environment"]["Variables"]["LOWKIQ_QUEUES"]
    values = values_of(template, {"OtherQueues": others, "QueueSchedules": own})
    text = evaluate(given, values, template["Conditions"])
    drains = Settings(queues=text or None).drains

    assert left_out == text
    assert [True, *[False] * left_out.count("-")] == [
        drains(name) for name in ("Invoices", *left_out.replace("-", "").split(",")) if name
    ]


def test_a_schedule_of_a_queue_sends_what_drains_the_queue_alone(template: dict[str, Any]) -> None:
    """It has the name of the queue, in its own name without what names of resources cannot have."""
    variable, over, body = template["Resources"]["Fn::ForEach::SchedulesOfQueues"]
    properties = body["DrainScheduleOf&{Queue}"]["Properties"]

    assert ("Queue", {"Ref": "QueueSchedules"}) == (variable, over)
    assert {"Fn::Sub": '{"queue": "${Queue}"}'} == properties["Target"]["Input"]
    assert [False, True] == [holds(template, "DrainsQueues", {"QueueSchedules": one}) for one in ("", "Orders")]


def variables(template: dict[str, Any], resources: dict[str, dict[str, Any]], function: str) -> dict[str, Any]:
    """The environment of a function."""
    everywhere: dict[str, Any] = template["Globals"]["Function"]["Environment"]["Variables"]
    own: dict[str, Any] = resources[function]["Properties"]["Environment"]["Variables"]
    return everywhere | own


@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize("chosen", [0, -1])
def test_what_a_parameter_may_be_is_taken(
    template: dict[str, Any], resources: dict[str, dict[str, Any]], function: str, chosen: int
) -> None:
    """The functions start with the parameters' defaults, and with the first and the last of their allowed values."""
    parameters = template["Parameters"]

    def value(given: Any) -> str:
        parameter = parameters.get(given["Ref"], {}) if "Ref" in given else {}
        allowed = parameter.get("AllowedValues", [parameter.get("Default", "")])
        return str(allowed[chosen])

    environment = {name: value(given) for name, given in variables(template, resources, function).items()}

    assert "jobs:app" == Settings.from_env(environment).app
    assert DashboardSettings.from_env(environment).dashboard_base_path == ""
    assert Config.from_env(environment).redis_url is None


def test_a_drain_may_start_itself_where_it_has_to(
    template: dict[str, Any], resources: dict[str, dict[str, Any]]
) -> None:
    """Where drains continue, handlers wake or ticks fan out, the role has that right, on the function and no other."""
    drain = resources["DrainFunction"]["Properties"]
    waking = drain["Environment"]["Variables"]["LOWKIQ_WAKE_FUNCTION"]
    (right,) = [one for one in statements(resources["DrainRole"]) if one.get("Sid") == "StartDrains"]
    names = [f"{drain['FunctionName']['Fn::Sub']}:live", drain["FunctionName"]["Fn::Sub"]]

    assert {"Fn::If": ["Wakes", {"Fn::If": ["StartsVersions", *({"Fn::Sub": name} for name in names)]}, ""]} == waking
    _, *rights = right["Resource"]["Fn::If"]
    assert [f":function:{name}" for name in names] == [
        one["Fn::Sub"].partition("${AWS::AccountId}")[2] for one in rights
    ]
    options = [{"Condition": name} for name in ("StartsDrains", "Wakes")]
    assert {"Fn::Or": options} == template["Conditions"]["InvokesItself"]


def test_e24_lambda_repeats_no_tick_and_no_drain(resources: dict[str, dict[str, Any]]) -> None:
    """E-24: what failed is done by the next minute's event; one that finds no concurrency waits ten minutes at most."""
    invoked = resources["DrainInvocation"]["Properties"]

    assert (0, 600) == (invoked["MaximumRetryAttempts"], invoked["MaximumEventAgeInSeconds"])


def test_whom_a_claim_lets_in_api_gateway_has_checked(resources: dict[str, dict[str, Any]]) -> None:
    """The kind of claims that the dashboard believes is the kind of authorizer that stands before it."""
    (route,) = of_kind(resources, "AWS::ApiGatewayV2::Route").values()

    assert {"Fn::If": ["ChecksJwt", "JWT", {"Fn::If": ["ChecksSignature", "AWS_IAM", "NONE"]}]} == (
        route["AuthorizationType"]
    )
    assert {"Fn::If": ["ChecksJwt", {"Ref": "DashboardAuthorizer"}, {"Ref": "AWS::NoValue"}]} == route["AuthorizerId"]


def test_the_formed_parameters_take_what_the_library_makes(template: dict[str, Any]) -> None:
    """A hashed password, tokens by their digests and rules on claims pass; anything plain is refused."""
    digest = "0" * 64

    def passes(name: str, value: str) -> bool:
        return re.fullmatch(template["Parameters"][name]["AllowedPattern"], value) is not None

    accounts = f"olga:operator:{hashed('a long password')},ben:reader:{hashed('another long one')}"
    assert passes("DashboardAccounts", accounts)
    auth = DashboardSettings.from_env({"LOWKIQ_DASHBOARD_ACCOUNTS": accounts}).auth()
    assert ["olga", "ben"] == [*auth.accounts]
    assert not passes("DashboardAccounts", "olga:operator:a long password")
    assert passes("DashboardReaderPassword", hashed("a long password"))
    assert passes("DashboardTokens", f"prometheus:reader:sha256:{digest},deploy:operator:sha256:{digest}")
    assert passes("DashboardOperators", "cognito:groups=operators,email=*@example.org")
    assert not passes("DashboardReaderPassword", "a long password")
    assert not passes("DashboardTokens", "prometheus:reader:a-token-of-16-characters-or-more")
    assert not passes("DashboardReaders", "olga")


def test_no_stack_is_made_for_a_server_on_a_developers_machine(template: dict[str, Any]) -> None:
    """`embedded:` is refused with the parameters; every URL of a server, and none, is taken."""
    pattern = template["Parameters"]["RedisUrl"]["AllowedPattern"]

    for url in ("embedded:", " embedded:", "embedded:/var/lib/jobs"):
        assert not re.fullmatch(pattern, url)
    for url in ("", "-", "redis://:secret@redis.example:6379/0", "rediss+cluster://a:1,b:2", "{{resolve:ssm:url}}"):
        assert re.fullmatch(pattern, url)


def test_each_handler_is_there(resources: dict[str, dict[str, Any]]) -> None:
    """The functions are those that the package has, each in the file that the template names."""
    handlers = {name: one["Handler"] for name, one in of_kind(resources, "AWS::Serverless::Function").items()}

    assert set(FUNCTIONS) == set(handlers)
    for handler in handlers.values():
        module, _, function = handler.rpartition(".")
        path = ROOT / (module.replace(".", "/") + ".py")
        assert f"def {function}(" in path.read_text()


def test_a_tick_outlives_a_passing_fault(resources: dict[str, dict[str, Any]]) -> None:
    """A tick that could not be delivered is tried again within its minute, is not late, and is not lost silently."""
    schedules = of_kind(resources, "AWS::Scheduler::Schedule")

    loops = {"DrainSchedule${ShardIndex}", "DrainScheduleOf&{Queue}"}
    assert {"MinuteSchedule", "DrainSchedule"} | loops == set(schedules)
    for schedule in schedules.values():
        target = schedule["Target"]
        assert {"MaximumRetryAttempts": 2, "MaximumEventAgeInSeconds": 60} == target["RetryPolicy"]
        assert {"Arn": {"Fn::GetAtt": ["FailureQueue", "Arn"]}} == target["DeadLetterConfig"]
        assert {"Mode": "OFF"} == schedule["FlexibleTimeWindow"]
        assert {"Ref": "ScheduleGroup"} == schedule["GroupName"]


INPUTS: Final = {True: '{"tick": true}', False: '{"tick": "only"}'}


@pytest.mark.parametrize(
    ("given", "shards", "apart", "with_ticks"),
    [
        ({}, True, False, False),
        ({"ScheduleExpression": "rate(5 minutes)"}, True, False, False),
        ({"ShardSchedules": "false"}, False, False, True),
        ({"ShardSchedules": "false", "Idle": "punctual"}, False, True, False),
        ({"ShardSchedules": "false", "ScheduleExpression": "rate(5 minutes)"}, False, True, False),
        ({"ShardSchedules": "none"}, False, False, False),
    ],
    ids=["by default", "expression", "one for all", "one, punctual", "one, expression", "none"],
)
def test_shards_are_drained_as_the_parameters_say(  # noqa: PLR0913, PLR0917 - the table's columns
    template: dict[str, Any],
    resources: dict[str, dict[str, Any]],
    given: dict[str, str],
    shards: bool,  # noqa: FBT001 - the choice itself
    apart: bool,  # noqa: FBT001 - the choice itself
    with_ticks: bool,  # noqa: FBT001 - the choice itself
) -> None:
    """Each by a schedule of its own, or all by one, after the tick if nothing keeps it; the tick comes each minute."""
    each, all_, minute = (resources[name] for name in ("DrainSchedule${ShardIndex}", "DrainSchedule", "MinuteSchedule"))
    chosen, then, otherwise = minute["Properties"]["Target"]["Input"]["Fn::If"]

    assert (shards, apart) == (holds(template, each["Condition"], given), holds(template, all_["Condition"], given))
    assert INPUTS[with_ticks] == (then if holds(template, chosen, given) else otherwise)
    assert ("cron(* * * * ? *)", "{}") == (
        minute["Properties"]["ScheduleExpression"],
        all_["Properties"]["Target"]["Input"],
    )
    assert [{"Ref": "ScheduleExpression"}] * 2 == [one["Properties"]["ScheduleExpression"] for one in (each, all_)]


def test_no_schedule_of_a_stack_is_disabled_but_by_people(resources: dict[str, dict[str, Any]]) -> None:
    """What a stack does not need it does not have: a list of its schedules shows those that fire."""
    schedules = of_kind(resources, "AWS::Scheduler::Schedule")

    assert [{"Ref": "ScheduleState"}] * len(schedules) == [one["State"] for one in schedules.values()]


def test_each_shard_index_has_a_schedule(template: dict[str, Any]) -> None:
    """The schedules follow the parameter, each tells its shard, and the function is told which there are."""
    name, indexes, schedule = template["Resources"]["Fn::ForEach::DrainSchedules"]
    properties = schedule["DrainSchedule${ShardIndex}"]["Properties"]
    told = template["Resources"]["DrainFunction"]["Properties"]["Environment"]["Variables"]["LOWKIQ_SCHEDULED_SHARDS"]

    assert ("ShardIndex", {"Ref": "ShardIndexes"}) == (name, indexes)
    assert {"Fn::Sub": '{"shard": ${ShardIndex}}'} == properties["Target"]["Input"]
    assert {"Fn::If": ["DrainsEachShard", {"Fn::Join": [",", indexes]}, ""]} == told


def test_the_default_indexes_are_those_of_a_worker(template: dict[str, Any]) -> None:
    """Somebody who declares no shards_count need not name indexes; a rule on them knows the default, too."""
    default = template["Parameters"]["ShardIndexes"]["Default"]
    (assertion,) = template["Rules"]["IndexesAreForSchedulesOfShards"]["Assertions"]

    assert [str(index) for index in range(count_of(Worker))] == default.split(",")
    assert [{"Ref": "ShardIndexes"}, default.split(",")] == assertion["Assert"]["Fn::EachMemberIn"]


def test_a_condition_in_a_loop_stands_behind_the_type(templates: dict[str, dict[str, Any]]) -> None:
    """CloudFormation's page on loops: a stack whose loop has its condition first cannot be made."""
    looped = [
        body
        for template in templates.values()
        for name, loop in template["Resources"].items()
        if name.startswith("Fn::ForEach::")
        for body in loop[2].values()
    ]

    assert [["Type", "Condition", "Properties"]] * len(looped) == [list(body) for body in looped]


def test_the_docs_say_how_many_shards_a_stack_may_have(resources: dict[str, dict[str, Any]]) -> None:
    """As many as are left of 500 resources by the others, to ten."""
    others = len(resources) - 1

    assert f"about {(500 - others) // 10 * 10} " in (ROOT / "docs" / "drain-schedules.md").read_text()


def test_failed_events_are_not_tried_again(resources: dict[str, dict[str, Any]]) -> None:
    """The next tick does what this one did not; what failed can be looked at."""
    invocation = resources["DrainInvocation"]["Properties"]

    assert 0 == invocation["MaximumRetryAttempts"]
    assert {"Fn::GetAtt": ["FailureQueue", "Arn"]} == invocation["DestinationConfig"]["OnFailure"]["Destination"]


def test_roles_have_the_least_rights(resources: dict[str, dict[str, Any]]) -> None:
    """No statement allows an action by pattern, and only what AWS cannot limit is allowed on everything."""
    found = [one for one in statements(resources) if "Principal" not in one]

    assert found
    for statement in found:
        actions = [one for one in leaves(statement["Action"]) if ":" in one]
        assert actions
        assert not [action for action in actions if "*" in action]
        if "*" in leaves(statement["Resource"]) and statement["Effect"] == "Allow":
            assert set(actions) <= WITHOUT_RESOURCE


def test_each_function_has_a_role_of_its_own(resources: dict[str, dict[str, Any]]) -> None:
    """What one may do, another may not."""
    functions = of_kind(resources, "AWS::Serverless::Function")
    roles = {one["Role"]["Fn::GetAtt"][0] for one in functions.values()}

    assert len(FUNCTIONS) == len(roles)
    for one in functions.values():
        assert "Policies" not in one
    for role in of_kind(resources, "AWS::IAM::Role").values():
        assert not [one for one in leaves(role.get("ManagedPolicyArns", [])) if one.startswith("arn:")]


def test_logs_are_kept_for_a_bounded_time(templates: dict[str, dict[str, Any]]) -> None:
    """Every function logs to a group of the template, and each such group forgets."""
    resources = templates["template"]["Resources"]
    functions = of_kind({name: resources[name] for name in FUNCTIONS}, "AWS::Serverless::Function")

    for function in functions.values():
        group = resources[function["LoggingConfig"]["LogGroup"]["Ref"]]
        assert {"Ref": "LogRetentionDays"} == group["Properties"]["RetentionInDays"]


def test_lambda_lets_the_lines_of_metrics_pass_at_any_level(template: dict[str, Any]) -> None:
    """It takes a line that names no level for INFO, and its own lines about what went well are not paid for."""
    logging = template["Globals"]["Function"]["LoggingConfig"]

    assert {"Fn::If": ["LogsDetails", "DEBUG", "INFO"]} == logging["ApplicationLogLevel"]
    assert {"Fn::Equals": [{"Ref": "LogLevel"}, "DEBUG"]} == template["Conditions"]["LogsDetails"]
    assert ("JSON", "WARN") == (logging["LogFormat"], logging["SystemLogLevel"])
    for name in FUNCTIONS:
        assert {"LogGroup"} == template["Resources"][name]["Properties"]["LoggingConfig"].keys()


def test_alarms_watch_metrics_that_there_are(
    templates: dict[str, dict[str, Any]], resources: dict[str, dict[str, Any]]
) -> None:
    """Alarms and dashboard look at names that the functions publish and explain, in dimensions that they have."""
    published = {
        *ticking._OF_ALL,
        ticking.BLOCKED,
        ticking.DEAD,
        ticking.TRIMMED,
        ticking.WANTED,
        *duty_task.SCHEDULE_METRICS,
        duty_task.VIOLATIONS,
        *telemetry._COUNTED,
        *ELSEWHERE,
        FAILED_RECORDS,
    }
    assert published == METRICS.keys()
    ours = [one for one in watched(resources) if one["Namespace"] == {"Ref": "MetricsNamespace"}]
    shown = [metrics_shown(templates["cloudwatch-dashboard"], with_queues) for with_queues in (False, True)]

    assert {"oldest_due_age", "dead", "blocked", "schedules_missed", "verify_violations", FAILED_RECORDS} == {
        one["MetricName"] for one in ours
    }
    assert [["function"]] * len(ours) == [[each["Name"] for each in one["Dimensions"]] for one in ours]
    assert {"oldest_due_age", "dead"} == shown[0] < shown[1] <= published


def watched(resources: dict[str, dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """What the alarms look at, of a stack that publishes metrics: the namespace, name and dimensions of each metric."""
    for alarm in of_kind(resources, "AWS::CloudWatch::Alarm").values():
        deployed = chosen(alarm, {"PublishesMetrics": True})
        if "Metrics" not in deployed:
            yield deployed
        for one in deployed.get("Metrics", []):
            if "MetricStat" in one:
                yield one["MetricStat"]["Metric"]


def metrics_shown(template: dict[str, Any], with_queues: bool) -> set[str]:  # noqa: FBT001 - the choice itself
    """The names of our metrics on CloudWatch's dashboard, for a stack that publishes those of queues or does not."""
    _, (start, of_queues, end) = template["Resources"]["Dashboard"]["Properties"]["DashboardBody"]["Fn::Join"]
    chosen = leaves(of_queues["Fn::If"][1]) if with_queues else [""]
    text = "".join([*leaves(start), *chosen, end])
    named = [metric for widget in json.loads(text)["widgets"] for metric in widget["properties"].get("metrics", [])]
    searched = re.findall(r'MetricName=\\?"(\w+)', text)
    return {*searched, *(metric[1] for metric in named if metric[0] == "${MetricsNamespace}")}


def test_every_alarm_goes_to_the_topic(resources: dict[str, dict[str, Any]]) -> None:
    """Failures, silence, age, dead, blocked, missed, failed, late, set aside: a topic is told of each, and its end."""
    alarms = of_kind(resources, "AWS::CloudWatch::Alarm")
    to_topic = {"Fn::If": ["HasAlarmTopic", [{"Ref": "AlarmTopicArn"}], {"Ref": "AWS::NoValue"}]}

    lambdas = {"Errors", "Throttles", "AsyncEventsDropped", "IteratorAge"}
    ours = {"oldest_due_age", "dead", "blocked", "schedules_missed", "verify_violations", FAILED_RECORDS}
    of_queues = {
        "NumberOfMessagesSent",
        "NumberOfMessagesDeleted",
        "ApproximateAgeOfOldestMessage",
        "ApproximateNumberOfMessagesVisible",
        "ApproximateNumberOfMessagesNotVisible",
    }
    assert {*lambdas, *of_queues, *ours} == {one["MetricName"] for one in watched(resources)}
    assert [[to_topic, to_topic]] * len(alarms) == [[one["AlarmActions"], one["OKActions"]] for one in alarms.values()]


def test_no_alarm_tells_by_a_lack_of_data(templates: dict[str, dict[str, Any]]) -> None:
    """Rules and pagers that look for the state ALARM hear of each, and nobody has to look for INSUFFICIENT_DATA."""
    flat = [one for template in templates.values() for one in template["Resources"].values() if isinstance(one, dict)]
    alarms = [one["Properties"] for one in flat if one["Type"] == "AWS::CloudWatch::Alarm"]

    assert alarms
    for alarm in alarms:
        assert "InsufficientDataActions" not in alarm
        assert alarm["TreatMissingData"] in {"breaching", "notBreaching", "ignore"}


def test_a_source_is_told_which_records_failed(resources: dict[str, dict[str, Any]]) -> None:
    """Without ReportBatchItemFailures Lambda deletes what the ingest function says has failed."""
    mappings = of_kind(resources, "AWS::Lambda::EventSourceMapping")

    assert {"InboxMapping", "QueueMapping", "StreamMapping"} == mappings.keys()
    assert [["ReportBatchItemFailures"]] * 3 == [one["FunctionResponseTypes"] for one in mappings.values()]


def test_a_message_is_tried_again_after_six_timeouts(template: dict[str, Any]) -> None:
    """As AWS advises: so long may the poller take; the docs and the parameters' texts say the same seconds."""
    function, queue = (template["Resources"][name]["Properties"] for name in ("IngestFunction", "InboxQueue"))
    parameters = template["Parameters"]

    assert 6 * function["Timeout"] == queue["VisibilityTimeout"]
    assert f"{queue['VisibilityTimeout']} seconds" in parameters["IngestQueueArn"]["Description"]
    assert "each three minutes" in parameters["InboxReceives"]["Description"]


def test_a_queue_and_its_dead_letters_are_of_one_kind(resources: dict[str, dict[str, Any]]) -> None:
    """SQS takes only a FIFO queue behind a FIFO queue. Jobs that lie in them outlive a change of the kind."""
    inbox, dead = resources["InboxQueue"], resources["InboxDeadLetters"]
    fifo = {"Fn::If": ["InboxIsFifo", True, {"Ref": "AWS::NoValue"}]}

    assert [fifo, fifo] == [one["Properties"]["FifoQueue"] for one in (inbox, dead)]
    assert [1_209_600] * 2 == [one["Properties"]["MessageRetentionPeriod"] for one in (inbox, dead)]
    assert ["Retain"] * 2 == [one["UpdateReplacePolicy"] for one in (inbox, dead)]
    assert {"Fn::GetAtt": ["InboxDeadLetters", "Arn"]} == inbox["Properties"]["RedrivePolicy"]["deadLetterTargetArn"]


def test_a_stack_without_ways_in_has_nothing_of_them(
    template: dict[str, Any], resources: dict[str, dict[str, Any]]
) -> None:
    """By default none is made: each resource of theirs has a condition that the defaults do not meet."""
    conditions = {
        "StartsIngestVersions",
        "HasInbox",
        "TakesQueue",
        "TakesStream",
        "TakesEvents",
        "TakesBuckets",
        "TakesFromBuses",
        "Ingests",
    }
    of_ways_in = {name for name, one in resources.items() if one.get("Condition") in conditions}

    assert [] == [name for name in conditions if holds(template, name, {})]
    assert {
        name for name in resources if name.startswith(("Ingest", "Inbox", "Stream", "Queue", "Bucket"))
    } <= of_ways_in


def test_events_are_tried_again_before_they_are_lost(resources: dict[str, dict[str, Any]]) -> None:
    """Unlike ticks they come once: for six hours, then they are in the failure queue, which EventBridge may fill."""
    invocation = resources["IngestInvocation"]["Properties"]
    (target,) = resources["IngestRule"]["Properties"]["Targets"]
    (right,) = statements(resources["FailureQueuePolicy"])
    failures = {"Fn::GetAtt": ["FailureQueue", "Arn"]}

    assert (2, 21_600) == (invocation["MaximumRetryAttempts"], invocation["MaximumEventAgeInSeconds"])
    assert failures == invocation["DestinationConfig"]["OnFailure"]["Destination"] == target["DeadLetterConfig"]["Arn"]
    assert {
        "aws:SourceArn": [
            {"Fn::If": [condition, {"Fn::GetAtt": [rule, "Arn"]}, {"Ref": "AWS::NoValue"}]}
            for condition, rule in (("TakesEvents", "IngestRule"), ("TakesBuckets", "BucketRule"))
        ]
    } == right["Condition"]["ArnEquals"]


WAYS_IN: Final = ("InboxMapping", "QueueMapping", "StreamMapping")


def test_what_starts_functions_starts_the_alias_where_there_is_one(
    templates: dict[str, dict[str, Any]], resources: dict[str, dict[str, Any]]
) -> None:
    """Schedules, rules, mappings, API, permissions, what retries, and what others import: none starts other code."""
    own = templates["queue-function"]
    everything = json.dumps([resources, templates["template"]["Outputs"], own["Resources"], own["Outputs"]])

    def chooses(value: object, function: str) -> bool:
        latest = [{"Fn::GetAtt": [function, "Arn"]}, {"Ref": function}]
        return value in [
            {"Fn::If": ["StartsVersions", {"Ref": f"{function.removesuffix('Function')}Alias"}, one]} for one in latest
        ]

    assert all(chooses(resources[name]["Properties"]["FunctionName"], "IngestFunction") for name in WAYS_IN)
    assert chooses(resources["DashboardIntegration"]["Properties"]["IntegrationUri"], "DashboardFunction")
    for permission in of_kind(resources, "AWS::Lambda::Permission").values():
        function = "DashboardFunction" if permission["Principal"].startswith("api") else "IngestFunction"
        assert chooses(permission["FunctionName"], function)
    for function in FUNCTIONS:
        arn = json.dumps({"Fn::GetAtt": [function, "Arn"]})
        alias = json.dumps({"Ref": f"{function.removesuffix('Function')}Alias"})
        assert everything.count(arn) == everything.count(f'["StartsVersions", {alias}, {arn}]') > 0


def test_each_release_publishes_versions_that_stay(
    templates: dict[str, dict[str, Any]], resources: dict[str, dict[str, Any]]
) -> None:
    """Another `Release` makes another version, as it is its description; the old one is there to go back to."""
    own = templates["queue-function"]["Resources"]
    names = [name.removesuffix("Function") for name in FUNCTIONS]
    for name, stack in (*((name, resources) for name in names), ("Drain", own)):
        version, alias = stack[f"{name}Version"], stack[f"{name}Alias"]

        assert ["Retain"] * 2 == [version["DeletionPolicy"], version["UpdateReplacePolicy"]]
        assert {"Ref": "Release"} == version["Properties"]["Description"]
        assert {"Fn::GetAtt": [f"{name}Version", "Version"]} == alias["Properties"]["FunctionVersion"]
        assert ALIAS == alias["Properties"]["Name"]
        assert version["Condition"] == alias["Condition"]


def test_a_burst_of_messages_leaves_drains_their_share(
    template: dict[str, Any], resources: dict[str, dict[str, Any]]
) -> None:
    """By default messages take half of what a new account has, five places of ten, however many wait."""
    at_once = template["Parameters"]["MessageConcurrency"]

    assert (5, 2, 1_000) == (at_once["Default"], at_once["MinValue"], at_once["MaxValue"])
    assert [{"MaximumConcurrency": {"Ref": "MessageConcurrency"}}] * 2 == [
        resources[name]["Properties"]["ScalingConfig"] for name in WAYS_IN[:2]
    ]


def test_a_bucket_is_taken_from_by_its_name_and_kind_of_event(resources: dict[str, dict[str, Any]]) -> None:
    """Other buckets that tell EventBridge, and deletions, start nothing; the rule of sources takes its types."""
    bucket, sources = (resources[name]["Properties"]["EventPattern"] for name in ("BucketRule", "IngestRule"))

    assert ["aws.s3"] == bucket["source"]
    assert {"Fn::Split": [",", {"Ref": "IngestBuckets"}]} == bucket["detail"]["bucket"]["name"]
    assert {"Fn::Split": [",", {"Ref": "IngestBucketEvents"}]} == bucket["detail-type"]
    types = {"Fn::Split": [",", {"Ref": "IngestEventTypes"}]}
    assert {"Fn::If": ["ChoosesEvents", types, {"Ref": "AWS::NoValue"}]} == sources["detail-type"]


def test_a_fifo_queue_gets_no_batching_window(resources: dict[str, dict[str, Any]]) -> None:
    """AWS takes none there, not even zero seconds."""
    inbox, queue, stream = (resources[name]["Properties"] for name in WAYS_IN)
    window, nothing = "MaximumBatchingWindowInSeconds", {"Ref": "AWS::NoValue"}

    assert {"Fn::If": ["InboxIsFifo", nothing, {"Ref": "MessageBatchingWindow"}]} == inbox[window]
    assert {"Fn::If": ["InboxIsFifo", 10, {"Ref": "MessageBatchSize"}]} == inbox["BatchSize"]
    assert {"Fn::If": ["Collects", {"Ref": "MessageBatchingWindow"}, nothing]} == queue[window]
    assert {"Ref": "StreamBatchingWindow"} == stream[window]


def test_functions_may_not_use_the_rights_that_lambda_has_as_them(templates: dict[str, dict[str, Any]]) -> None:
    """As AWS advises: their own code makes, lists and deletes no network interfaces of the account."""
    for name in ("template", "queue-function"):
        found = [*statements(templates[name]["Resources"])]
        (allowed,) = [one for one in found if one.get("Sid") == "EnterTheVpc"]
        (denied,) = [one for one in found if one["Effect"] == "Deny"]
        (whose,) = denied["Condition"]["ArnLike"].items()

        assert {*allowed["Action"], "ec2:DetachNetworkInterface"} == {*denied["Action"]}
        assert whose[0] == "lambda:SourceFunctionArn"
        assert whose[1]["Fn::Sub"].endswith(":function:${AWS::StackName}-*")


def test_a_package_can_be_built_for_every_choice(template: dict[str, Any]) -> None:
    """For each runtime and architecture that may be chosen there is a folder, with the same way to build."""
    chosen = [template["Parameters"][name]["AllowedValues"] for name in ("Runtime", "Architecture")]
    makefiles = {path.parent.name: path.read_text() for path in (ROOT / "infra" / "package").glob("*/Makefile")}

    assert {f"{runtime}-{architecture}" for runtime, architecture in product(*chosen)} == set(makefiles)
    assert 1 == len(set(makefiles.values()))


def test_outputs_are_what_is_asked_of_the_stack(template: dict[str, Any]) -> None:
    """The dashboard's URL, the functions' names, and what the schedules command takes from a stack."""
    asked = {
        "DashboardUrl",
        "DrainFunctionName",
        "DashboardFunctionName",
        "DrainFunctionArn",
        "SchedulerRoleArn",
        "FailureQueueArn",
    }

    assert asked <= set(template["Outputs"])


def test_every_parameter_is_in_a_group_and_is_used(template: dict[str, Any]) -> None:
    """Nobody is asked for something that changes nothing."""
    groups = template["Metadata"]["AWS::CloudFormation::Interface"]["ParameterGroups"]
    listed = [name for group in groups for name in group["Parameters"]]
    text = json.dumps({name: template[name] for name in ("Resources", "Globals", "Conditions")})

    assert sorted(template["Parameters"]) == sorted(listed)
    assert [] == [name for name in listed if f'"{name}"' not in text and f"${{{name}}}" not in text]


REDIS: Final = {"RedisUrl": "redis://redis.example:6379"}
SECRET: Final = {"RedisSecretArn": "arn:aws:secretsmanager:eu-west-1:123456789012:secret:redis-AbCdEf"}
IAM: Final = {"RedisIamUser": "lowkiq", "RedisIamCache": "jobs"}
CLAIMS: Final = {"DashboardClaims": "jwt", "DashboardOperators": "sub=olga"}
ISSUER: Final = {"DashboardJwtIssuer": "https://issuer.example", "DashboardJwtAudience": "dashboard"}
VERSIONS: Final = {"Alias": "live", "Release": "1.0"}
QUEUE: Final = {"IngestQueueArn": "arn:aws:sqs:eu-west-1:123456789012:orders"}
EIGHT: Final = "0,1,2,3,4,5,6,7"
NETWORK: Final = {"SubnetIds": "subnet-1,subnet-2", "SecurityGroupIds": "sg-1"}


@pytest.mark.parametrize(
    "given",
    [
        REDIS,
        SECRET,
        SECRET | {"RedisUrl": "-"},
        REDIS | NETWORK,
        REDIS | IAM | NETWORK | {"RedisIamServerless": "true"},
        REDIS | CLAIMS | ISSUER,
        REDIS | {"DashboardClaims": "iam", "DashboardReaders": "accountId=123456789012"},
        REDIS | {"ShardIndexes": EIGHT, "ScheduleExpression": "rate(5 minutes)"},
        REDIS | {"ShardSchedules": "false", "ScheduleExpression": "rate(5 minutes)"},
        REDIS | {"ShardSchedules": "none"},
        REDIS | {"ShardSchedules": "none", "QueueSchedules": "Orders", "ScheduleExpression": "rate(5 minutes)"},
        REDIS | {"Inbox": "standard", "MessageBatchSize": "100", "MessageBatchingWindow": "5"},
        REDIS
        | QUEUE
        | {"Inbox": "fifo", "MessageBatchingWindow": "5", "MessageFilter": '{"body": {"kind": ["paid"]}}'},
        REDIS | {"Alias": "live", "Release": "1.0", "SnapStart": "true"},
        REDIS | QUEUE | {"IngestConcurrency": "5"},
        REDIS | {"IngestBuckets": "uploads", "IngestConcurrency": "1"},
    ],
    ids=[
        "url",
        "secret",
        "no url",
        "network",
        "iam",
        "claims of a token",
        "claims of a signature",
        "schedules of shards",
        "one schedule",
        "no schedules",
        "schedules of queues",
        "batches of an inbox",
        "batches of a queue",
        "snapshots",
        "room for messages",
        "room for events",
    ],
)
def test_what_fits_together_is_deployed(template: dict[str, Any], given: dict[str, str]) -> None:
    """A server that is named once, with all that signing in takes, is enough."""
    assert [] == refusals(template, given)


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({}, "Name the Redis server"),
        ({"RedisUrl": "-"}, "Name the Redis server"),
        (REDIS | NETWORK | {"RedisIamUser": "lowkiq"}, "RedisIamUser needs RedisIamCache"),
        (REDIS | NETWORK | {"RedisIamCache": "jobs"}, "RedisIamCache needs RedisIamUser"),
        (SECRET | IAM | NETWORK, "give it as RedisUrl"),
        (REDIS | IAM, "from their VPC only"),
        (REDIS | IAM | NETWORK | {"RedisIamService": "memorydb", "RedisIamServerless": "true"}, "MemoryDB has none"),
        (REDIS | {"SubnetIds": "subnet-1"}, "together"),
        (REDIS | {"SecurityGroupIds": "sg-1"}, "together"),
        (REDIS | CLAIMS, "give DashboardJwtIssuer and DashboardJwtAudience"),
        (REDIS | CLAIMS | ISSUER | {"DashboardJwtAudience": ""}, "give DashboardJwtIssuer and DashboardJwtAudience"),
        (REDIS | {"DashboardClaims": "iam"}, "DashboardClaims needs"),
        (REDIS | {"DashboardReaders": "sub=rita"}, "say with DashboardClaims on whose"),
        (REDIS | {"ShardSchedules": "false", "ShardIndexes": EIGHT}, "ShardIndexes names the shards"),
        (REDIS | {"ShardSchedules": "none", "ShardIndexes": EIGHT}, "ShardIndexes names the shards"),
        (REDIS | {"ShardSchedules": "none", "ScheduleExpression": "rate(5 minutes)"}, "says when shards are drained"),
        (REDIS | {"Inbox": "standard", "MessageBatchSize": "11"}, "give a MessageBatchingWindow"),
        (REDIS | {"Inbox": "fifo", "MessageBatchingWindow": "1"}, "for standard queues"),
        (REDIS | {"MessageFilter": "{}"}, "MessageFilter is for messages of IngestQueueArn"),
        (REDIS | {"StreamFilter": "{}"}, "for changes of IngestStreamArn"),
        (REDIS | {"StreamRecordAge": "60"}, "for changes of IngestStreamArn"),
        (REDIS | {"IngestEventTypes": "Order Paid"}, "for events of IngestEventSources"),
        (REDIS | {"IngestEventBus": "orders"}, "for events of IngestEventSources"),
        (REDIS | {"IngestBucketEvents": "Object Deleted"}, "for events of IngestBuckets"),
        (REDIS | {"MessageBatchSize": "5"}, "for Inbox or IngestQueueArn"),
        (REDIS | {"MessageBatchingWindow": "5"}, "for Inbox or IngestQueueArn"),
        (REDIS | {"MessageConcurrency": "9"}, "for Inbox or IngestQueueArn"),
        (REDIS | {"Inbox": "fifo", "MessageBatchSize": "5"}, "which gives 10"),
        (REDIS | {"InboxReceives": "5"}, "for an Inbox"),
        (REDIS | {"InboxAgeAlarm": "60"}, "for an Inbox"),
        (REDIS | {"IngestConcurrency": "9"}, "takes an Inbox or another way in"),
        (REDIS | {"Inbox": "fifo", "IngestConcurrency": "4"}, "less than MessageConcurrency"),
        (REDIS | QUEUE | {"IngestConcurrency": "1", "MessageConcurrency": "2"}, "less than MessageConcurrency"),
        (REDIS | QUEUE | {"IngestConcurrency": "9", "MessageConcurrency": "10"}, "less than MessageConcurrency"),
        (REDIS | {"RedisIamServerless": "true"}, "what RedisIamUser signs in to"),
        (REDIS | {"DashboardJwtAudience": "orders"}, "for DashboardClaims=jwt"),
        (REDIS | {"Metrics": "none", "OldestDueAgeAlarm": "60"}, "OldestDueAgeAlarm watches"),
        (REDIS | {"SnapStart": "true"}, "give Alias=live"),
        (REDIS | VERSIONS | {"SnapStart": "true", "Runtime": "python3.11"}, "Python 3.12 or newer"),
        (REDIS | {"Alias": "live"}, "each deploy starts what Release names"),
    ],
)
def test_what_does_not_fit_together_is_refused(template: dict[str, Any], given: dict[str, str], why: str) -> None:
    """Before anything is made, with a sentence."""
    (refusal,) = refusals(template, given)

    assert why in refusal


def holds(template: dict[str, Any], name: str, given: dict[str, str]) -> bool:
    """Whether a condition of the template is met with these parameters."""
    return bool(evaluate(template["Conditions"][name], values_of(template, given), template["Conditions"]))


def values_of(template: dict[str, Any], given: dict[str, str]) -> dict[str, Any]:
    """The parameters as functions see them: a list of texts, or a text."""
    parameters = template["Parameters"]
    texts = {name: str(one.get("Default", "")) for name, one in parameters.items()} | given
    lists = {name for name, one in parameters.items() if one["Type"] == "CommaDelimitedList"}
    return {name: text.split(",") if name in lists else text for name, text in texts.items()}


def refusals(template: dict[str, Any], given: dict[str, str]) -> list[str]:
    """What CloudFormation says of these parameters by the template's rules."""
    values = values_of(template, given)
    return [
        assertion["AssertDescription"]
        for rule in template["Rules"].values()
        if evaluate(rule.get("RuleCondition", {"Fn::Not": [{"Fn::Equals": ["a", "b"]}]}), values)
        for assertion in rule["Assertions"]
        if not evaluate(assertion["Assert"], values)
    ]


def evaluate(expression: Any, values: dict[str, Any], conditions: dict[str, Any] | None = None) -> Any:
    """What an expression of a rule comes to, or of a condition beside `conditions`."""
    if isinstance(expression, list):
        return [evaluate(one, values, conditions) for one in expression]
    if not isinstance(expression, dict):
        return expression
    ((name, arguments),) = expression.items()
    if name == "Ref":
        return values[arguments]
    if name == "Condition":
        return evaluate((conditions or {})[arguments], values, conditions)
    if name == "Fn::If":
        condition, *both = arguments
        return evaluate(both[not evaluate({"Condition": condition}, values, conditions)], values, conditions)
    found = [evaluate(one, values, conditions) for one in arguments]
    functions: dict[str, Callable[[], Any]] = {
        "Fn::Join": lambda: found[0].join(found[1]),
        "Fn::Select": lambda: found[1][found[0]],
        "Fn::Split": lambda: found[1].split(found[0]),
        "Fn::Equals": lambda: str(found[0]) == str(found[1]),
        "Fn::Not": lambda: not found[0],
        "Fn::And": lambda: all(found),
        "Fn::Or": lambda: any(found),
        "Fn::Contains": lambda: found[1] in found[0],
        "Fn::EachMemberIn": lambda: set(found[0]) <= set(found[1]),
    }
    return functions[name]()
