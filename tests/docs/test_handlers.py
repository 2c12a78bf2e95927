"""The handlers of pages that write: they end as a plain run ends, in the order of pushes that their pages speak of.

The dicts of these pages stand for databases. They compare no token, so no process stands still here.
"""

import ast
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest

from lowkiq_lambda.testing import AppUnderTest, OwnServer, app_under_test
from lowkiq_lambda.testing.fuzz.options import FuzzOptions
from lowkiq_lambda.testing.fuzz.plan import KINDS

DOCS: Final = Path(__file__).parents[2] / "docs"
IN_EACH_CHECK: Final = 30
IN_THE_NIGHT: Final = 500
_BLOCK: Final = re.compile(
    r"^```python\n(.+?)^```|^<!--- invisible-code-block: python\n(.+?)^--->", re.MULTILINE | re.DOTALL
)
_DECLARATIONS: Final = (ast.Import, ast.ImportFrom, ast.ClassDef, ast.FunctionDef, ast.Assign, ast.AnnAssign)
STATUSES: Final = [{"status": "new"}, {"status": "paid"}, {"status": "sent"}]


class Page(NamedTuple):
    """The page, the worker, the variable with its state, and how the fuzz differs from the default."""

    name: str
    worker: str
    state: str
    options: FuzzOptions = {}  # noqa: RUF012 - it is not changed
    surroundings: Mapping[str, Any] = {}


_IN_ORDER: Final = FuzzOptions(versions=False, merges=False)
"""Pages whose readers have not met versions that are late, nor payloads that merge."""
PAGES: Final = [
    Page("tutorial.md", "SyncOrder", "orders", _IN_ORDER, {"print": lambda *_, **__: None}),
    Page("testing.md", "SyncOrder", "orders", _IN_ORDER),
    Page("migrating/celery.md", "SyncOrder", "orders"),
    Page("migrating/sidekiq.md", "SyncOrder", "orders"),
    Page("migrating/sqs-fifo.md", "SyncOrder", "orders", FuzzOptions(versions=False)),
    Page(
        "iteration.md",
        "ImportPrices",
        "prices",
        FuzzOptions(versions=False, merges=False, payloads=[{"file": "prices.csv"}], ids=1),
    ),
]

_each_page: Final = pytest.mark.parametrize(
    ("page", "names"), [(page, page) for page in PAGES], indirect=["names"], ids=[page.name for page in PAGES]
)


def names_of(page: Page) -> dict[str, Any]:
    """What the first block with the worker declares, without what it pushes and drains."""
    text = (DOCS / page.name).read_text()
    blocks = _BLOCK.findall(text)
    codes = [shown or hidden for shown, hidden in blocks]
    last = next(number for number, code in enumerate(codes) if f"class {page.worker}(Worker" in code)
    # Only the page on cursors needs what stands before.
    needed = codes[: last + 1] if page.worker == "ImportPrices" else [codes[last]]
    body: list[ast.stmt] = [node for node in ast.parse("\n".join(needed)).body if isinstance(node, _DECLARATIONS)]
    names: dict[str, Any] = {"__name__": Path(page.name).stem, **page.surroundings}
    # Under the name of the page, so that its lines are points.
    exec(compile(ast.Module(body, []), str(DOCS / page.name), "exec"), names)  # noqa: S102 - the page is what is tested
    return names


@pytest.fixture
def names(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """The names of the page, in a folder with a file of prices."""
    (tmp_path / "prices.csv").write_text("sku,price\na,1\nb,2\nc,3\n")
    monkeypatch.chdir(tmp_path)
    return names_of(request.param)


def _fuzzed(kit: AppUnderTest, page: Page, names: dict[str, Any], scenarios: int) -> None:
    worker, state = names[page.worker], names[page.state]
    kind = names.get("OrderChanged")
    payloads = STATUSES if kind is None else [kind(each["status"]) for each in STATUSES]
    base = FuzzOptions(
        state=lambda: state,
        isolate=state,
        payloads=payloads,
        faults=[*{*KINDS} - {"freeze"}],
        scenarios=scenarios,
    )
    report = kit.fuzz(worker, **FuzzOptions(**{**base, **page.options}))

    assert report.faults["die"] > 0
    assert (report.scenarios, []) == (scenarios, report.findings)


@_each_page
def test_a_handler_of_a_page_ends_as_a_plain_run(
    page: Page, names: dict[str, Any], lowkiq_test_server: OwnServer
) -> None:
    """Some scenarios of it, in each check."""
    with app_under_test(names["app"], lowkiq_test_server) as kit:
        _fuzzed(kit, page, names, IN_EACH_CHECK)


@pytest.mark.nightly("hundreds of scenarios; some of them are in each check")
@_each_page
def test_a_handler_of_a_page_passes_all(page: Page, names: dict[str, Any], lowkiq_test_server: OwnServer) -> None:
    """All systematic ones, and random ones."""
    with app_under_test(names["app"], lowkiq_test_server) as kit:
        _fuzzed(kit, page, names, IN_THE_NIGHT)
