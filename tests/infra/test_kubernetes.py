"""The manifests for Kubernetes: KEDA takes them, pods end in time, and a day of load makes the pods turn seldom."""

import json
import re
from pathlib import Path
from typing import Any, Final

import jsonschema_rs
import msgspec
import pytest

from lowkiq_lambda import Config
from lowkiq_lambda.dashboard.api.routes import OPERATIONS
from lowkiq_lambda.dashboard.api.server_metrics import WANTED_HOLDERS
from tests.infra.replicas import Day, Rules, second_day

FOLDER: Final = Path(__file__).parents[2] / "infra" / "kubernetes"
SCHEMAS: Final = json.loads((Path(__file__).parent / "keda" / "schemas.json").read_text())
FIELDS: Final = {
    "prometheus": {"serverAddress", "query", "threshold", "ignoreNullValues"},
    "metrics-api": {"url", "valueLocation", "targetValue", "authMode"},
}
"""Of the metadata of triggers: the schema takes any text there. Those that KEDA's two scalers read, and ours use."""
SHARDS: Final = 40
UNITS: Final = {"s": 1.0, "m": 60.0, "h": 3_600.0}


def manifests(name: str) -> list[dict[str, Any]]:
    """Those of a file."""
    return [msgspec.yaml.decode(text) for text in (FOLDER / f"{name}.yaml").read_text().split("\n---\n")]


def closed(schema: Any) -> Any:
    """The schema, which takes no field that it does not name."""
    if isinstance(schema, list):
        return [closed(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    more = {"additionalProperties": False} if "properties" in schema else {}
    return {**{name: closed(one) for name, one in schema.items()}, **more}


def rules_of(name: str) -> Rules:
    """What a scaled object says, as a scaler of Kubernetes takes it."""
    spec = manifests(name)[0]["spec"]
    (trigger,) = spec["triggers"]
    down = spec["advanced"]["horizontalPodAutoscalerConfig"]["behavior"]["scaleDown"]
    (policy,) = down["policies"]
    metadata = trigger["metadata"]
    look_back = re.search(r"max_over_time\(.*\[(\d+)([smh])\]\)", metadata.get("query", ""))
    return Rules(
        threads=float(metadata.get("threshold") or metadata["targetValue"]),
        least=spec["minReplicaCount"],
        most=spec["maxReplicaCount"],
        look_back=float(look_back[1]) * UNITS[look_back[2]] if look_back else 0.0,
        window=down["stabilizationWindowSeconds"],
        period=policy["periodSeconds"],
        step_down=policy["value"],
    )


@pytest.mark.parametrize("name", ["keda", "keda-metrics-api"])
def test_keda_takes_the_manifests(name: str) -> None:
    """By the schemas of its definitions, without a field that these do not have."""
    for manifest in manifests(name):
        validator = jsonschema_rs.validator_for(closed(SCHEMAS[manifest["kind"]]))
        assert [] == [error.message for error in validator.iter_errors(manifest["spec"])]
        assert ("keda.sh/v1alpha1", {"apiVersion", "kind", "metadata", "spec"}) == (manifest["apiVersion"], {*manifest})
    (trigger,) = manifests(name)[0]["spec"]["triggers"]
    assert FIELDS[trigger["type"]] == {*trigger["metadata"]}
    assert {str} == {type(value) for value in trigger["metadata"].values()}


def test_a_field_that_keda_does_not_have_is_refused() -> None:
    """Else the test above could not fail."""
    spec = {**manifests("keda")[0]["spec"], "coolDownPeriod": 600}

    assert not jsonschema_rs.validator_for(closed(SCHEMAS["ScaledObject"])).is_valid(spec)


def test_the_triggers_ask_for_what_the_dashboard_has() -> None:
    """The metric of Prometheus, and the path of the API."""
    (by_query,) = manifests("keda")[0]["spec"]["triggers"]
    (by_url,) = manifests("keda-metrics-api")[0]["spec"]["triggers"]

    assert f"lowkiq_{WANTED_HOLDERS.name}[" in by_query["metadata"]["query"]
    (path,) = [operation.path for operation in OPERATIONS if operation.path == "/scale"]
    assert by_url["metadata"]["url"].endswith(f"/api/v1{path}")


def test_pods_have_the_threads_that_they_are_scaled_by_and_time_to_end() -> None:
    """Kubernetes kills later than the daemon ends by itself; all threads of all pods are the shards at most."""
    (deployment,) = manifests("daemon")
    pod = deployment["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    given = {one["name"]: one.get("value") for one in container["env"]}

    assert pod["terminationGracePeriodSeconds"] > float(given["LOWKIQ_SHUTDOWN_TIMEOUT"]) + 5
    assert float(given["LOWKIQ_SHUTDOWN_TIMEOUT"]) == Config().shutdown_timeout
    assert "replicas" not in deployment["spec"]
    for name in ("keda", "keda-metrics-api"):
        assert float(given["LOWKIQ_THREADS_PER_NODE"]) == rules_of(name).threads
        assert manifests(name)[0]["spec"]["scaleTargetRef"]["name"] == deployment["metadata"]["name"]


@pytest.mark.parametrize("seed", [1, 2])
def test_a_day_makes_the_pods_turn_as_seldom_as_the_load(seed: int) -> None:
    """The load goes up and down once, with noise: four turns at most, never too many pods, and never one too few."""
    day = scaled("keda", seed)

    assert day.turns <= 4
    assert 0.0 == day.late


def test_without_a_query_the_pods_turn_some_times_more() -> None:
    """The window of Kubernetes is an hour at most."""
    day = scaled("keda-metrics-api", 1)

    assert day.turns <= 10
    assert 0.0 == day.late


def scaled(name: str, seed: int) -> Day:
    """The day of a manifest, within whose bounds the pods stay."""
    rules = rules_of(name)
    day = second_day(rules, SHARDS, seed)

    assert rules.least <= min(day.pods)
    assert max(day.pods) <= rules.most == SHARDS / rules.threads
    return day
