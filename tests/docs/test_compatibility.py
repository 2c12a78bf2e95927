"""The page of compatibility lists exactly what is public."""

from importlib import import_module

from lowkiq_lambda import Lowkiq
from lowkiq_lambda.operate.operations import Operations
from lowkiq_lambda.operate.queue_operations import QueueOperations
from tests.kit.public_names import listed, members


def test_the_page_lists_exactly_what_is_public() -> None:
    """A name that comes, goes, or is renamed has to change the page, and so is seen by its reader."""
    objects = {"an app, `Lowkiq`": Lowkiq(), "`app.operate`": Operations, "`app.operate(worker)`": QueueOperations}
    found = listed()
    modules = {of: sorted(import_module(of.strip("`")).__all__) for of in found if of.startswith("`lowkiq_lambda")}

    assert 7 == len(modules)
    assert modules | {of: members(each) for of, each in objects.items()} == found
