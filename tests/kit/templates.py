"""The templates as values, and the tools that read them."""

import json
import os
import subprocess
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).parents[2]
TOOLS: Final = Path(os.environ.get("LOWKIQ_TEST_SAM") or ROOT / ".tools" / "sam" / "bin")
CHECKOV: Final = Path(os.environ.get("LOWKIQ_TEST_CHECKOV") or ROOT / ".tools" / "checkov" / "bin")
INFRA: Final = sorted((ROOT / "infra").glob("*.yaml"))
FUNCTIONS: Final = ("DrainFunction", "IngestFunction", "DashboardFunction")
NOT_OURS: Final = {"AWS_USE_DUALSTACK_ENDPOINT", "POWERTOOLS_LOG_LEVEL"}
"""Variables of the functions that AWS's libraries read."""

# PyYAML, which knows the short forms of CloudFormation there, is in the environment of these tools alone.
PARSE: Final = """
import json, sys
from samcli.yamlhelper import yaml_parse
print(json.dumps([yaml_parse(open(path).read()) for path in sys.argv[1:]]))
"""


def run(program: str, *arguments: str, tools: Path = TOOLS) -> subprocess.CompletedProcess[str]:
    """Runs one of the tools, without credentials or region."""
    assert (tools / program).exists(), f"there is no {tools / program}: run `make setup`"
    environment = {"PATH": "/usr/bin:/bin", "HOME": os.environ["HOME"], "SAM_CLI_TELEMETRY": "0"}
    return subprocess.run(
        [tools / program, *arguments], cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )


def parsed_templates() -> dict[str, dict[str, Any]]:
    """All templates as values, by their names."""
    paths = [ROOT / "template.yaml", *INFRA]
    parsed = json.loads(run("python", "-c", PARSE, *map(str, paths)).stdout)
    return dict(zip([path.stem for path in paths], parsed, strict=True))


def of_kind(template: dict[str, Any], kind: str) -> dict[str, dict[str, Any]]:
    """The properties of all resources of one type, by name."""
    found = {name: one for name, one in template["Resources"].items() if not name.startswith("Fn::")}
    return {name: one["Properties"] for name, one in found.items() if one["Type"] == kind}
