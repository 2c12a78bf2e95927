"""Charts: what is written below them."""

from itertools import pairwise

import pytest

from lowkiq_lambda.dashboard.charts import chart
from lowkiq_lambda.store.inspect.history import SPANS
from lowkiq_lambda.views import Series, Span


@pytest.mark.parametrize("span", SPANS)
def test_marks_are_whole_minutes_apart(span: Span) -> None:
    """From edge to edge, evenly: so that clocks which show no seconds look even, too."""
    _, length, step = SPANS[span]
    nothing = (0,) * (length // step)

    marks = chart(Series(began_at=1_000.0, step=step, done=nothing, failed=nothing)).marks

    assert (1_000.0, 1_000.0 + length) == (marks[0], marks[-1])
    (between,) = {after - before for before, after in pairwise(marks)}
    assert 0 == between % 60
