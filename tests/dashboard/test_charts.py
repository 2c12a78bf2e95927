"""Charts: what is written below them."""

from itertools import pairwise

import pytest

from lowkiq_lambda.dashboard.charts import chart
from lowkiq_lambda.operate.inspect.history import SPANS
from lowkiq_lambda.views.queues import Series, Span


@pytest.mark.parametrize("span", SPANS)
def test_marks_are_whole_minutes_apart(span: Span) -> None:
    """From edge to edge, evenly: so that clocks which show no seconds look even, too."""
    _, length, step, _ = SPANS[span]
    nothing = (0,) * (length // step)

    marks = chart(Series(began_at=1_000.0, step=step, ended=nothing, failed=nothing)).marks

    assert (1_000.0, 1_000.0 + length) == (marks[0], marks[-1])
    (between,) = {after - before for before, after in pairwise(marks)}
    assert 0 == between % 60


def test_arrivals_are_a_line_with_gaps_by_the_scale_of_what_ended() -> None:
    """And a column of the table, where a row of which a part is not known has none."""
    made = chart(Series(began_at=0.0, step=10, ended=(10, 20, 0, 0), failed=(0,) * 4, arrived=(None, 40, 20, None)))

    assert (4.0, 60) == (made.most, made.total_arrived)
    assert "M333 0.0L667 50.0" == made.arrived
    assert [(0.0, None, 10, 0), (10.0, 40, 20, 0), (20.0, 20, 0, 0), (30.0, None, 0, 0)] == made.rows


def test_failures_have_a_band_of_their_own() -> None:
    """One spike of failures flattens nothing: each line has a scale for its own largest value."""
    made = chart(Series(began_at=0.0, step=10, ended=(10, 20), failed=(4_000, 0)))

    assert (2.0, 400.0) == (made.most, made.most_failed)
    assert ("M0 50.0L1000 0.0", "M0 0.0L1000 100.0") == (made.ended, made.failed)
