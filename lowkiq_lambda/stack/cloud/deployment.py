"""Deploys a template to a cloud: puts the packages where it finds them, and makes the stack.

What `sam deploy` does, with the same template, in a tenth of its time.
"""

import io
import re
import time
from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from hashlib import sha256
from pathlib import Path
from typing import Any, Final
from zipfile import ZIP_STORED, ZipFile

from lowkiq_lambda.base.errors import LowkiqError
from lowkiq_lambda.stack.cloud.access import CloudAccess
from lowkiq_lambda.stack.scaffold.owned import TEMPLATE, stack_folder

PACKAGES: Final = {
    "DrainFunction": "DrainFunction",
    "IngestFunction": "DrainFunction",
    "DashboardFunction": "DashboardFunction",
}
"""The functions, and whose package each has: two share one."""

_LONGEST_BODY: Final = 51_200
"""Bytes of a template that CloudFormation takes in a call."""
_LONGEST_DELETION: Final = 3_600
"""Seconds: AWS takes the network interfaces of functions in a VPC away when it likes."""
_PARAMETER: Final = re.compile(r"^  (\w+):\n    Type: ", re.MULTILINE)
_PROPERTIES: Final = re.compile(r"^  (?P<name>\w+):\n(?:    .*\n)*?    Properties:\n", re.MULTILINE)


class DeploymentFailed(LowkiqError):
    """The stack did not become what was asked for."""


class Deployment:
    """One stack, by `template`, or the library's, from its next change on. `tags` are those of all that it makes."""

    def __init__(
        self, cloud: CloudAccess, name: str, template: Path | None = None, tags: Mapping[str, str] | None = None
    ) -> None:
        self.name = name
        self.template = template or stack_folder() / TEMPLATE
        self._tags = [{"Key": key, "Value": value} for key, value in (tags or {}).items()]
        self._cloud = cloud
        self._bucket = f"packages-{name}"
        self._secrets: set[str] = set()
        self._keys: dict[str, str] = {}
        self._has_bucket = False
        self._api: Any = cloud.client("cloudformation")

    def upload(self, packages: Path) -> None:
        """Put built packages where the stack's functions take them from."""
        s3 = self._cloud.client("s3")
        s3.create_bucket(Bucket=self._bucket)
        self._has_bucket = True
        for package in {*PACKAGES.values()}:
            body = _zipped(packages / package)
            # Another name for other code: a function with the same name keeps the code that it has.
            self._keys[package] = f"{package}-{sha256(body).hexdigest()[:16]}.zip"
            s3.put_object(Bucket=self._bucket, Key=self._keys[package], Body=body)

    def keep_secret(self, text: str, what: str = "password") -> str:
        """Store a secret beside the stack; its ARN. One that is there keeps its text, which may have been rotated."""
        secrets, name = self._cloud.client("secretsmanager"), f"{what}-{self.name}"
        self._secrets.add(name)
        try:
            kept = secrets.create_secret(Name=name, SecretString=text)
        except secrets.exceptions.ResourceExistsException:
            kept = secrets.describe_secret(SecretId=name)
        return str(kept["ARN"])

    def create(self, **parameters: str) -> None:
        """Make the stack. Raises DeploymentFailed."""
        self._api.create_stack(StackName=self.name, **self._request(parameters))
        self._expect("CREATE_COMPLETE")

    def update(self, **parameters: str) -> None:
        """Change these parameters of the stack, and leave the others that its template has. Raises DeploymentFailed."""
        others = {each["ParameterKey"] for each in self._describe()["Parameters"]} - parameters.keys()
        others &= parameter_names(self.template)
        self._api.update_stack(StackName=self.name, **self._request(parameters, others))
        self._expect("UPDATE_COMPLETE")

    def delete(self) -> None:
        """Take the stack away, the packages, and the secrets: each, whether or not another one could be taken away."""
        secrets = self._cloud.client("secretsmanager")
        with ExitStack() as rest:
            if self._has_bucket:
                rest.callback(self._delete_bucket)
            for name in self._secrets:
                rest.callback(secrets.delete_secret, SecretId=name, ForceDeleteWithoutRecovery=True)
            self._api.delete_stack(StackName=self.name)
            often = {"Delay": 1, "MaxAttempts": _LONGEST_DELETION}
            self._api.get_waiter("stack_delete_complete").wait(StackName=self.name, WaiterConfig=often)

    def code_uri(self, package: str) -> str:
        """Where a package that was uploaded last lies."""
        return f"s3://{self._bucket}/{self._keys[package]}"

    @property
    def alarms(self) -> list[Any]:
        """The stack's alarms, with their states and descriptions."""
        watch = self._cloud.client("cloudwatch")
        alarms: list[Any] = watch.describe_alarms(AlarmNamePrefix=f"{self.name}-")["MetricAlarms"]
        return alarms

    @property
    def dashboard_url(self) -> str:
        """Where the dashboard is for a browser on this machine: its host name is one of loopback."""
        return f"http://{self.resources['DashboardApi']}.execute-api.localhost:{self._cloud.port}/"

    @property
    def outputs(self) -> dict[str, str]:
        """What the stack tells of itself."""
        return {each["OutputKey"]: each["OutputValue"] for each in self._describe()["Outputs"]}

    @property
    def resources(self) -> dict[str, str]:
        """Its resources: the name in the template, and what AWS calls it."""
        listed = self._api.describe_stack_resources(StackName=self.name)["StackResources"]
        return {each["LogicalResourceId"]: each["PhysicalResourceId"] for each in listed}

    def _delete_bucket(self) -> None:
        s3 = self._cloud.client("s3")
        for each in s3.list_objects_v2(Bucket=self._bucket).get("Contents", []):
            s3.delete_object(Bucket=self._bucket, Key=each["Key"])
        s3.delete_bucket(Bucket=self._bucket)

    def _request(self, parameters: Mapping[str, str], previous: Iterable[str] = ()) -> dict[str, Any]:
        text = self._template()
        return {
            **(
                {"TemplateBody": text} if len(text.encode()) <= _LONGEST_BODY else {"TemplateURL": self._uploaded(text)}
            ),
            "Tags": self._tags,
            "Parameters": [
                *({"ParameterKey": key, "ParameterValue": value} for key, value in parameters.items()),
                *({"ParameterKey": key, "UsePreviousValue": True} for key in previous),
            ],
            "Capabilities": ["CAPABILITY_IAM", "CAPABILITY_NAMED_IAM", "CAPABILITY_AUTO_EXPAND"],
        }

    def _uploaded(self, template: str) -> str:
        """Where the template lies, as for `sam deploy`."""
        s3 = self._cloud.client("s3")
        s3.put_object(Bucket=self._bucket, Key=TEMPLATE, Body=template.encode())
        return f"{self._cloud.url}/{self._bucket}/{TEMPLATE}"

    def _template(self) -> str:
        """The template as it is, but for where the code lies."""

        def with_code(match: re.Match[str]) -> str:
            package = PACKAGES.get(match["name"])
            return match[0] + (f"      CodeUri: {self.code_uri(package)}\n" if package else "")

        return _PROPERTIES.sub(with_code, self.template.read_text())

    def _describe(self) -> dict[str, Any]:
        stack: dict[str, Any] = self._api.describe_stacks(StackName=self.name)["Stacks"][0]
        return stack

    def _expect(self, status: str) -> None:
        while (stack := self._describe())["StackStatus"].endswith("_IN_PROGRESS"):
            time.sleep(self._cloud.rest)
        if stack["StackStatus"] != status:
            events = self._api.describe_stack_events(StackName=self.name)["StackEvents"]
            reasons = [
                f"{each['LogicalResourceId']}: {each['ResourceStatusReason']}"
                for each in events
                if each.get("ResourceStatusReason") and each["ResourceStatus"].endswith("_FAILED")
            ]
            raise DeploymentFailed(f"{self.name} is {stack['StackStatus']}: {'; '.join(reasons)}")


def parameter_names(template: Path) -> set[str]:
    """The parameters that a template has."""
    return {*_PARAMETER.findall(template.read_text(encoding="utf-8").partition("\nRules:")[0])}


def _zipped(folder: Path) -> bytes:
    packed = io.BytesIO()
    with ZipFile(packed, "w", ZIP_STORED) as archive:
        for path in sorted(folder.rglob("*")):
            if path.is_file():
                archive.write(path, path.relative_to(folder))
    return packed.getvalue()
