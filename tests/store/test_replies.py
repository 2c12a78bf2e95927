"""What scripts answer: each has one shape with names, beside its call."""

import pkgutil
from collections import Counter
from importlib import import_module

import lowkiq_lambda.operate
import lowkiq_lambda.store
import lowkiq_lambda.tasks
from lint.lua import texts_of
from lowkiq_lambda.store.shard.scripts import ReplyShape


def shapes() -> list[type[ReplyShape]]:
    """All of the library."""
    packages = [lowkiq_lambda.operate, lowkiq_lambda.store, lowkiq_lambda.tasks]
    for package in packages:
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            import_module(module.name)
    return ReplyShape.__subclasses__()


def scripts() -> list[str]:
    """Those that can be called."""
    return sorted(path.split("/")[1].removesuffix(".lua") for path in texts_of() if not path.startswith("include/"))


def test_each_script_has_one_shape_and_each_shape_its_scripts() -> None:
    """A script without a shape is read by position, and a shape whose script is gone says nothing."""
    named = Counter(script for shape in shapes() for script in shape.scripts)

    assert dict.fromkeys(scripts(), 1) == dict(named)
