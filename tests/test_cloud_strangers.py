"""The local cloud is for the program that started it: no web page and no other user of the machine can call it."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import closing
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any
from urllib.parse import urlencode

import pytest
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

from tests.kit.servers import LocalCloud
from tests.kit.servers.ports import HOST
from tests.kit.windows import running_browser

ANY_ROLE = json.dumps({"Version": "2012-10-17", "Statement": []})
CLAIMS = urlencode(
    {
        "X-Amz-Algorithm": "AWS4-HMAC-SHA256",
        "X-Amz-Credential": "test/20260101/us-east-1/iam/aws4_request",
        "X-Amz-Signature": "00",
        "X-Amz-SignedHeaders": "host",
        "X-Amz-Date": "20260101T000000Z",
    }
)
MOST = 10 * 1024 * 1024
"""Bytes of a body."""
STRANGER = """
import json, sys, urllib.request

statuses = []
for url, body, headers in json.load(sys.stdin):
    request = urllib.request.Request(url, body and body.encode(), headers)
    try:
        statuses.append(urllib.request.urlopen(request, timeout=20).status)
    except urllib.error.HTTPError as error:
        statuses.append(error.code)
print(json.dumps(statuses))
"""
PAGE = """async ([url, body]) => {
  const post = {method: "POST", body, headers: {"Content-Type": "text/plain"}};
  await fetch(url, {...post, mode: "no-cors"}).catch(() => null);
  return await fetch(url, post).then(answer => answer.text(), () => "rejected");
}"""


def made_role(name: str) -> str:
    """The body of a call that makes a role, which is the first step to a function of any code."""
    return urlencode(
        {"Action": "CreateRole", "Version": "2010-05-08", "RoleName": name, "AssumeRolePolicyDocument": ANY_ROLE}
    )


def roles(cloud: LocalCloud) -> list[str]:
    """Those that there are."""
    return [role["RoleName"] for role in cloud.client("iam").list_roles()["Roles"]]


@pytest.fixture
def origin() -> Iterator[str]:
    """A web server of another origin, with an empty page."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.end_headers()

        def log_message(self, format: str, *arguments: object) -> None:  # noqa: A002 - as the base class has it
            pass

    with ThreadingHTTPServer((HOST, 0), Handler) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://localhost:{server.server_port}/"
        server.shutdown()


@pytest.mark.timeout(120)
def test_a_web_page_cannot_call_it(cloud: LocalCloud, origin: str) -> None:
    """Neither by a simple request, which a browser sends to anybody, nor by one whose answer the page may read."""
    with running_browser() as browser, closing(browser.new_page()) as page:
        page.goto(origin)
        read = [
            page.evaluate(PAGE, [f"http://{host}:{cloud.port}/?{CLAIMS}", made_role(f"page-{number}")])
            for number, host in enumerate((HOST, "localhost", "abcdef01.execute-api.localhost"))
        ]

    assert ["rejected"] * 3 == read
    assert not [name for name in roles(cloud) if name.startswith("page-")]


def test_another_user_of_the_machine_cannot_call_it(cloud: LocalCloud) -> None:
    """A process with nothing but Python, whatever it claims to have signed."""
    header = "AWS4-HMAC-SHA256 Credential={}/20260101/us-east-1/iam/aws4_request, SignedHeaders=host, Signature=00"
    form = {"Content-Type": "application/x-www-form-urlencoded"}
    key = cloud.environment["AWS_ACCESS_KEY_ID"]
    claims: list[dict[str, str]] = [
        form,
        *({**form, "Authorization": header.format(one)} for one in ("test", "000000000000", key)),
        {**form, "Host": f"abcdef01.execute-api.localhost:{cloud.port}", "Authorization": header.format("test")},
        {**form, "Host": f"abcdef01.execute-api.localhost:{cloud.port}"},
        {**form, "Host": "evil.example"},
    ]
    calls: list[Any] = [(f"{cloud.url}/", made_role("stranger"), headers) for headers in claims]
    calls += [(f"{cloud.url}/?{CLAIMS}", made_role("stranger"), form)]
    gateway = {"Host": f"abcdef01.execute-api.localhost:{cloud.port}"}
    paths = ("/_ministack/config", "/_ministack/reset", "/2015-03-31/functions/", "/any-bucket/key")
    calls += [(f"{cloud.url}{path}", "{}", headers) for path in paths for headers in (gateway, {})]

    done = subprocess.run(
        [shutil.which("python3", path="/usr/bin:/bin") or sys.executable, "-c", STRANGER],
        input=json.dumps(calls),
        capture_output=True,
        text=True,
        check=True,
        env={},
        cwd="/",
        user="nobody" if os.geteuid() == 0 and shutil.which("python3", path="/usr/bin:/bin") else None,
    )

    assert {403, 404} >= {*json.loads(done.stdout)}
    assert "stranger" not in roles(cloud)


def signed(cloud: LocalCloud, body: str, secret: str, **headers: str) -> int:
    """The status of a call that makes a role, signed with the key of this run and that secret."""
    credentials = Credentials(cloud.environment["AWS_ACCESS_KEY_ID"], secret)
    request = AWSRequest("POST", f"{cloud.url}/", headers={"Host": f"{HOST}:{cloud.port}"}, data=made_role("signed"))
    SigV4Auth(credentials, "iam", "us-east-1").add_auth(request)
    with closing(HTTPConnection(HOST, cloud.port, timeout=20)) as connection:
        connection.request("POST", "/", body, {**dict(request.headers), **headers})
        return connection.getresponse().status


def test_a_signature_counts_for_what_was_signed(cloud: LocalCloud) -> None:
    """With the secret of this run, for these bytes, and for no web page."""
    right, body = cloud.environment["AWS_SECRET_ACCESS_KEY"], made_role("signed")

    refused = [
        signed(cloud, body, "another"),
        signed(cloud, made_role("changed"), right),
        signed(cloud, body, right, Origin="http://localhost:8000"),
        signed(cloud, body, right, **{"Sec-Fetch-Site": "cross-site"}),
        signed(cloud, body, right, Host="evil.example"),
    ]

    assert [403] * 5 == refused
    assert not {"signed", "changed"} & {*roles(cloud)}
    assert 200 == signed(cloud, body, right)
    cloud.client("iam").delete_role(RoleName="signed")


def answered_to(cloud: LocalCloud, headers: dict[str, str], parts: Sequence[bytes] = ()) -> int:
    """The status for a body, which may come before that is whole."""
    with closing(HTTPConnection(HOST, cloud.port, timeout=60)) as connection:
        connection.putrequest("POST", "/", skip_host=True)
        for name, value in headers.items():
            connection.putheader(name, value)
        connection.endheaders()
        for part in parts:
            connection.send(part)
        return connection.getresponse().status


def test_a_body_that_nobody_signs_is_bounded(cloud: LocalCloud) -> None:
    """As API Gateway bounds it, at 10 MB; what says that it is larger is not even read."""
    gateway = {"Host": f"abcdef01.execute-api.localhost:{cloud.port}"}
    chunk = b"%x\r\n%b\r\n" % (MOST // 10, b"x" * (MOST // 10))

    statuses = [
        answered_to(cloud, {**gateway, "Content-Length": str(MOST)}, [b"x" * MOST]),
        answered_to(cloud, {**gateway, "Content-Length": str(MOST + 1)}),
        answered_to(cloud, {**gateway, "Transfer-Encoding": "chunked"}, [*[chunk] * 10, b"1\r\nx\r\n"]),
    ]

    assert [404, 413, 413] == statuses


def test_a_large_body_is_read_of_nobody_who_only_knows_a_key(cloud: LocalCloud) -> None:
    """Everybody knows the account's number; where a signature is of a digest, it is checked before the body."""
    large = {"Host": f"{HOST}:{cloud.port}", "Content-Length": str(MOST + 1)}
    header = "AWS4-HMAC-SHA256 Credential={}/20260101/us-east-1/s3/aws4_request, SignedHeaders=host, Signature=00"
    keys = ("000000000000", cloud.environment["AWS_ACCESS_KEY_ID"])

    statuses = [
        answered_to(cloud, {**large, "Authorization": header.format("000000000000")}),
        *(
            answered_to(cloud, {**large, "Authorization": header.format(key), "X-Amz-Content-Sha256": "0" * 64})
            for key in keys
        ),
    ]

    assert [403] * 3 == statuses


def test_who_signs_may_send_a_large_body(cloud: LocalCloud) -> None:
    """As an upload of a package is."""
    objects = cloud.client("s3")
    objects.create_bucket(Bucket="large")
    objects.put_object(Bucket="large", Key="package", Body=b"x" * (MOST + 1))
    length = objects.head_object(Bucket="large", Key="package")["ContentLength"]
    objects.delete_object(Bucket="large", Key="package")
    objects.delete_bucket(Bucket="large")

    assert MOST + 1 == length


def test_each_run_has_a_key_of_its_own(cloud: LocalCloud) -> None:
    """What was found out of one is good for no other."""
    other = LocalCloud()
    other.close()

    assert not {*cloud.environment.values()} & {
        other.environment[f"AWS_{name}"] for name in ("ACCESS_KEY_ID", "SECRET_ACCESS_KEY")
    }
