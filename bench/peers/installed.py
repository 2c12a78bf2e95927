"""Where the peers are installed, and which versions; what is missing is None.

`make peers` installs them into `.tools/peers`, `.tools/peers-older` and `.tools/peers-node`; LOWKIQ_BENCH_PEERS names
another place for the first, and so for the others, whose names begin with its own.
"""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]
_VARIABLE: Final = "LOWKIQ_BENCH_PEERS"


@dataclass(frozen=True, slots=True)
class Installed:
    """The version; what commands have words in braces for; variables of the environment."""

    version: str
    words: Mapping[str, str]
    environment: Mapping[str, str] = field(default_factory=dict)


def folder(name: str) -> Path:
    """Of one of the environments: "peers", "peers-older" or "peers-node"."""
    first = Path(os.environ.get(_VARIABLE) or ROOT / ".tools" / "peers").absolute()
    return first.with_name(first.name + name.removeprefix("peers"))


def ours() -> Installed:
    """This checkout, by this interpreter."""
    return Installed("", {"python": sys.executable}, {"PYTHONPATH": str(ROOT)})


def in_environment(name: str, distribution: str) -> Installed | None:
    """A distribution for Python."""
    environment = folder(name)
    for described in environment.glob(f"lib/python*/site-packages/{distribution}-*.dist-info"):
        version = described.name.removeprefix(f"{distribution}-").removesuffix(".dist-info")
        programs = environment / "bin"
        words = {"bin": str(programs), "python": str(programs / "python")}
        return Installed(version, words, {"PYTHONPATH": str(ROOT)})
    return None


def bullmq() -> Installed | None:
    """BullMQ, for Node.js."""
    node, modules = shutil.which("node"), folder("peers-node") / "node_modules"
    described = modules / "bullmq" / "package.json"
    if not node or not described.exists():
        return None
    return Installed(json.loads(described.read_bytes())["version"], {"node": node}, {"NODE_PATH": str(modules)})


def sidekiq() -> Installed | None:
    """Sidekiq, as its program is found."""
    ruby, program = shutil.which("ruby"), shutil.which("sidekiq")
    if not ruby or not program:
        return None
    printed = subprocess.run([program, "--version"], capture_output=True, text=True, check=False).stdout
    return Installed(_number(printed), {"ruby": ruby, "sidekiq": program})


def lowkiq() -> Installed | None:
    """Lowkiq, of the checkout that LOWKIQ_DIR names."""
    ruby, checkout = shutil.which("ruby"), os.environ.get("LOWKIQ_DIR")
    described = Path(checkout or "") / "lib" / "lowkiq" / "version.rb"
    if not ruby or not checkout or not described.exists():
        return None
    return Installed(_number(described.read_text()), {"ruby": ruby, "lowkiq": checkout})


def _number(text: str) -> str:
    return next(iter(re.findall(r"\d+(?:\.\d+)+", text)), "")
