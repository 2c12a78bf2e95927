"""`lowkiq stack rollback` on the local cloud: the alias goes to another version, or it says why not."""

import io
import json
import os
from collections.abc import Callable, Iterator
from typing import Any, Final
from uuid import uuid4
from zipfile import ZipFile

import pytest
from botocore.exceptions import ClientError

from lowkiq_lambda.aws.drain_schedules.deployed import runs_latest
from lowkiq_lambda.cli import main
from lowkiq_lambda.cli.codes import DONE, FAILED, MISUSED, NOT_APPLIED
from lowkiq_lambda.stack.rollback import AliasMove, move, plan_rollback
from tests.kit.servers.cloud import LocalCloud

FUNCTIONS: Final = ("drain", "dashboard")
ROLE: Final = "arn:aws:iam::000000000000:role/anybody"

pytestmark = pytest.mark.xdist_group("cloud")

Run = Callable[..., tuple[int, str, str]]


class Versions:
    """A stack that tells what ours does, with functions of which each deploy makes a version."""

    def __init__(self, cloud: LocalCloud, alias: str | None = "live") -> None:
        self.name = f"test-{uuid4().hex[:8]}"
        self.api: Any = cloud.client("lambda")
        self._stacks: Any = cloud.client("cloudformation")
        self._make(alias)
        for function in FUNCTIONS:
            self.api.create_function(
                FunctionName=self.full(function),
                Runtime="python3.13",
                Role=ROLE,
                Handler="index.handler",
                Code={"ZipFile": zipped("1")},
                Environment={"Variables": {"LOWKIQ_RELEASE": "v1"}},
            )

    def _make(self, alias: str | None) -> None:
        outputs = {
            f"{function.title()}FunctionName": {"Value": {"Fn::Sub": f"${{AWS::StackName}}-{function}"}}
            for function in FUNCTIONS
        }
        template = {
            "Parameters": {"Alias": {"Type": "String"}} if alias is not None else {},
            "Resources": {"Topic": {"Type": "AWS::SNS::Topic"}},
            "Outputs": outputs,
        }
        parameters = [{"ParameterKey": "Alias", "ParameterValue": alias}] if alias is not None else []
        self._stacks.create_stack(StackName=self.name, TemplateBody=json.dumps(template), Parameters=parameters)
        self._stacks.get_waiter("stack_create_complete").wait(StackName=self.name, WaiterConfig={"Delay": 1})

    def full(self, function: str) -> str:
        """Its name in the account."""
        return f"{self.name}-{function}"

    def deploy(self, number: int, *functions: str) -> None:
        """What a deploy of a release does: code, a version, and the alias on it."""
        for name in map(self.full, functions or FUNCTIONS):
            variables = {"Variables": {"LOWKIQ_RELEASE": f"v{number}"}}
            self.api.update_function_code(FunctionName=name, ZipFile=zipped(str(number)))
            self.api.update_function_configuration(FunctionName=name, Environment=variables)
            version = self.api.publish_version(FunctionName=name)["Version"]
            try:
                self.api.update_alias(FunctionName=name, Name="live", FunctionVersion=version)
            except ClientError:
                self.api.create_alias(FunctionName=name, Name="live", FunctionVersion=version)

    def runs(self) -> list[str]:
        """The version behind the alias of each function."""
        aliases = [self.api.get_alias(FunctionName=self.full(each), Name="live") for each in FUNCTIONS]
        return [alias["FunctionVersion"] for alias in aliases]

    def delete(self) -> None:
        """Take all of it away."""
        for function in FUNCTIONS:
            self.api.delete_function(FunctionName=self.full(function))
        self._stacks.delete_stack(StackName=self.name)


def zipped(text: str) -> bytes:
    """A package whose handler answers the text."""
    packed = io.BytesIO()
    with ZipFile(packed, "w") as archive:
        archive.writestr("index.py", f"def handler(event, context):\n    return {text!r}\n")
    return packed.getvalue()


@pytest.fixture
def make_stack(cloud: LocalCloud, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Versions]]:
    """Makes stacks in the cloud, which this process takes for AWS."""
    made: list[Versions] = []
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(name)
    for name, value in cloud.environment.items():
        monkeypatch.setenv(name, value)

    def make(alias: str | None = "live") -> Versions:
        made.append(Versions(cloud, alias))
        return made[-1]

    yield make
    for stack in made:
        stack.delete()


@pytest.fixture
def stack(make_stack: Callable[..., Versions]) -> Versions:
    """One of three releases, of which the third runs."""
    stack = make_stack()
    for number in (1, 2, 3):
        stack.deploy(number)
    return stack


@pytest.fixture
def run(capfd: pytest.CaptureFixture[str]) -> Run:
    """The command in this process."""

    def run(*words: str) -> tuple[int, str, str]:
        code = main(["stack", "rollback", *words])
        out, error = capfd.readouterr()
        return code, out, error

    return run


def test_functions_go_back_to_the_version_before(stack: Versions, run: Run) -> None:
    """What it shows is what becomes true; whoever starts the alias starts the code of that release."""
    planned, out, _ = run(stack.name, "--dry-run")
    before = stack.runs()
    done, _, told = run(stack.name, "--yes")
    name = stack.full("drain")
    answer = json.load(stack.api.invoke(FunctionName=name, Qualifier="live")["Payload"])

    assert (NOT_APPLIED, ["3", "3"]) == (planned, before)
    (line,) = [line for line in out.splitlines() if line.startswith(name)]
    assert [" 3 (v3), of 2", " 2 (v2), of 2"] == [part for part in (" 3 (v3), of 2", " 2 (v2), of 2") if part in line]
    assert (DONE, ["2", "2"], "2") == (done, stack.runs(), answer)
    assert f"{name} runs version 2" in told


def test_any_version_may_be_asked_for(stack: Versions, run: Run) -> None:
    """An older one, and forward again; the one that runs is no move, and says so."""
    back, _, _ = run(stack.name, "--to", "1", "--yes")
    first = stack.runs()
    forth, _, _ = run(stack.name, "--to", "3", "--yes")
    nothing, answer, said = run(stack.name, "--to", "3", "--yes", "--json")

    assert ([DONE] * 3, ["1", "1"], ["3", "3"]) == ([back, forth, nothing], first, stack.runs())
    assert [] == json.loads(answer)
    assert "Nothing to do: version 3 runs." in said


def test_what_was_taken_back_does_not_come_back(stack: Versions, run: Run) -> None:
    """Before the newest deploy ran what the rollback had chosen, and not the version with the next lower number."""
    for _ in range(2):
        run(stack.name, "--yes")
    stack.deploy(4)
    run(stack.name, "--yes")
    before = stack.runs()
    run(stack.name, "--to", "2", "--yes")
    stack.deploy(5)
    run(stack.name, "--yes")

    assert (["1", "1"], ["2", "2"]) == (before, stack.runs())


def test_each_function_may_have_a_version_of_its_own(stack: Versions, run: Run) -> None:
    """By its name, or by the part of it behind the stack's; those that are not named stay, or have the one for all."""
    one, _, _ = run(stack.name, "--to", "drain=1", "--yes")
    first = stack.runs()
    both, _, _ = run(stack.name, "--to", f"{stack.full('drain')}=2", "--to", "1", "--yes")

    assert ([DONE, DONE], ["1", "3"], ["2", "1"]) == ([one, both], first, stack.runs())


@pytest.mark.parametrize(
    ("word", "code", "why"),
    [
        ("drain", MISUSED, "--to drain is refused: write VERSION or FUNCTION=VERSION, such as drain=17."),
        ("drain=new", MISUSED, "--to drain=new is refused: write VERSION or FUNCTION=VERSION, such as drain=17."),
        ("ingest=2", FAILED, "has no function 'ingest': expected one of drain, dashboard."),
        ("0", FAILED, "has no version 0: expected one of 1, 2, 3."),
        ("drain=7", FAILED, "has no version 7: expected one of 1, 2, 3."),
    ],
)
def test_a_version_that_names_nothing_is_refused(stack: Versions, run: Run, word: str, code: int, why: str) -> None:
    """Before anything has moved."""
    refused, _, error = run(stack.name, "--to", word, "--yes")

    assert (code, ["3", "3"]) == (refused, stack.runs())
    assert why in " ".join(error.split())


def test_a_version_that_was_deleted_is_left_out(stack: Versions, run: Run) -> None:
    """People delete old ones, as the runbook says: the one before is then the next older one."""
    for function in FUNCTIONS:
        stack.api.delete_function(FunctionName=stack.full(function), Qualifier="2")
    code, _, _ = run(stack.name, "--yes")
    gone, _, why = run(stack.name, "--to", "2", "--yes")

    assert (DONE, FAILED, ["1", "1"]) == (code, gone, stack.runs())
    assert "has no version 2: expected one of 1, 3." in why


def test_the_moves_are_json_for_programs(stack: Versions, run: Run) -> None:
    """Each function, with what runs and what would."""
    _, out, _ = run(stack.name, "--dry-run", "--json")
    moves = json.loads(out)

    assert [(stack.full(each), 3, 2) for each in FUNCTIONS] == [
        (one["function"], one["runs"]["number"], one["then"]["number"]) for one in moves
    ]
    assert {"v3"} == {one["runs"]["release"] for one in moves}


def test_a_function_without_a_version_before_stays(make_stack: Callable[..., Versions], run: Run) -> None:
    """A deploy that changes one function alone publishes a version of it alone."""
    stack = make_stack()
    stack.deploy(1)
    stack.deploy(2, "drain")
    code, out, _ = run(stack.name, "--yes")

    assert (DONE, ["1", "1"]) == (code, stack.runs())
    assert stack.full("dashboard") not in out


def test_a_function_that_the_newest_release_did_not_change_stays(make_stack: Callable[..., Versions], run: Run) -> None:
    """It runs what it ran before that release, and its own version before is older still."""
    stack = make_stack()
    for number in (1, 2):
        stack.deploy(number)
    stack.deploy(3, "drain")
    code, _, _ = run(stack.name, "--yes")

    assert (DONE, ["2", "2"]) == (code, stack.runs())


def test_a_rollback_that_broke_off_goes_on(stack: Versions, run: Run) -> None:
    """Run again it moves the functions that are left, and none a second time; after that it goes one release on."""
    move(plan_rollback(stack.name)[0])
    half = stack.runs()
    run(stack.name, "--yes")
    whole = stack.runs()
    run(stack.name, "--yes")

    assert (["2", "3"], ["2", "2"], ["1", "1"]) == (half, whole, stack.runs())


def test_there_is_nothing_before_the_first_version(make_stack: Callable[..., Versions], run: Run) -> None:
    """One deploy leaves nothing to go back to; a version that was never published is not invented."""
    stack = make_stack()
    stack.deploy(1)
    only, _, why = run(stack.name, "--yes")
    unknown, _, which = run(stack.name, "--to", "7", "--yes")

    assert ([FAILED, FAILED], ["1", "1"]) == ([only, unknown], stack.runs())
    assert "has one version of each function: there is none to go back to." in why
    assert "has no version 7: expected one of 1." in which


def test_a_stack_that_starts_the_latest_code_is_refused(make_stack: Callable[..., Versions], run: Run) -> None:
    """There the alias moves nothing, so that a rollback would be believed and not be."""
    stack = make_stack(alias="")
    stack.deploy(1)
    stack.deploy(2)
    code, _, error = run(stack.name, "--yes")

    assert (FAILED, ["2", "2"]) == (code, stack.runs())
    assert "deploy it with Alias=live" in error


def test_an_alias_that_is_missing_is_told(make_stack: Callable[..., Versions], run: Run) -> None:
    """Functions that were made by hand, or by an older template."""
    code, _, error = run(make_stack().name, "--yes")

    assert FAILED == code
    assert "has no alias 'live': deploy its stack again." in error


def test_a_stack_that_is_not_there_is_told(make_stack: Callable[..., Versions], run: Run) -> None:
    """In AWS's own words, behind what could not be done."""
    make_stack()
    code, _, error = run("nobodys-stack", "--yes")

    assert FAILED == code
    assert "The stack 'nobodys-stack' could not be read" in error


def test_the_doctor_tells_of_a_version_that_is_not_the_latest(stack: Versions) -> None:
    """A rollback, or a deploy with the Release of before, whose code and variables nothing starts."""
    name = stack.full("drain")
    live = f"{stack.api.get_function_configuration(FunctionName=name)['FunctionArn']}:live"
    released = runs_latest(live)
    stack.api.update_function_configuration(FunctionName=name, Environment={"Variables": {"LOWKIQ_IDLE": "end"}})
    other_variables = runs_latest(live)
    stack.deploy(4)
    again = runs_latest(live)
    move(plan_rollback(stack.name)[0])

    assert [True, False, True, False] == [released, other_variables, again, runs_latest(live)]


def test_nobody_is_overtaken(stack: Versions) -> None:
    """Two people, or a deploy beside a rollback: the second hears of the first, and changes nothing."""
    (drain, _) = plan_rollback(stack.name)
    stack.deploy(4)

    with pytest.raises(Exception, match="Somebody else has moved the alias") as raised:
        move(drain)

    assert "DeployError" == type(raised.value).__name__
    assert ["4", "4"] == stack.runs()


def test_who_may_not_is_told_which_page_lists_the_rights(
    stack: Versions, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A refusal names the function, what was moved before it, and how to go on."""
    denied = ClientError({"Error": {"Code": "AccessDeniedException", "Message": "not you"}}, "UpdateAlias")

    def refuse(one: AliasMove) -> None:
        from lowkiq_lambda.aws.drain_schedules.deployed import said  # noqa: PLC0415 - as the command's own calls do

        with said(f"The alias of {one.function!r} could not be moved", "runbooks/rollback.md"):
            raise denied

    monkeypatch.setattr("lowkiq_lambda.stack.rollback.move", refuse)
    code, _, error = run(stack.name, "--yes")

    assert (FAILED, ["3", "3"]) == (code, stack.runs())
    assert "AccessDeniedException: not you The docs (runbooks/rollback.md) list the rights" in error
    assert "Moved before: none. Run it again: it goes on." in error


def test_without_yes_somebody_has_to_be_asked(stack: Versions, run: Run) -> None:
    """A pipeline that forgets it changes nothing."""
    code, _, error = run(stack.name)

    assert (MISUSED, ["3", "3"]) == (code, stack.runs())
    assert "give --yes" in error


def test_a_stack_of_cdk_goes_back_too(make_stack: Callable[..., Versions], run: Run) -> None:
    """It has the outputs and no parameters: only its aliases say whether versions run."""
    stack = make_stack(None)
    without = run(stack.name, "--yes")
    for number in (1, 2):
        stack.deploy(number)

    assert 1 == without[0]
    assert "has no alias 'live'" in without[2]
    assert 0 == run(stack.name, "--yes")[0]
    assert ["1", "1"] == stack.runs()
