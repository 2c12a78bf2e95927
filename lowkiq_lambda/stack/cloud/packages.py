"""Builds the packages of the functions, for this machine."""

import platform
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from lowkiq_lambda.stack.cloud.deployment import PACKAGES, DeploymentFailed


def build_packages(app: Path, into: Path) -> None:
    """Build the package of each function, with the app in the folder `app`. Raises DeploymentFailed."""
    architecture = "arm64" if platform.machine() in {"arm64", "aarch64"} else "x86_64"
    target = f"python{sys.version_info[0]}.{sys.version_info[1]}-{architecture}"

    def build(function: str) -> None:
        command = [sys.executable, "-m", "lowkiq_lambda.stack.packaging", function, target, str(into / function)]
        done = subprocess.run([*command, "--app", str(app)], capture_output=True, text=True, check=False)
        if done.returncode:
            raise DeploymentFailed(f"{function} cannot be built:\n{done.stdout}{done.stderr}")

    with ThreadPoolExecutor() as pool:
        list(pool.map(build, {*PACKAGES.values()}))
