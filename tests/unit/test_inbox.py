"""What slots ask of the coordinator of their visit, and that they keep it from nothing else."""

from lowkiq_lambda.engine.inbox import Inbox


def test_a_slot_that_posts_again_at_once_waits_for_the_next_time() -> None:
    """Progress that is saved after each item lets others begin, be settled and be cancelled in between."""
    inbox = Inbox()
    made: list[int] = []

    def save() -> None:
        made.append(len(made))
        # A coordinator that made all that come would be here for as long as the job.
        if len(made) < 100:
            inbox.post(save)

    inbox.post(save)
    inbox.post(save)
    inbox.make_calls()
    assert [0, 1] == made
    assert inbox.wait(0.0)
    inbox.make_calls()

    assert [0, 1, 2, 3] == made


def test_many_calls_ring_once() -> None:
    """A coordinator that is awake takes all of them: the next wait is one for what comes then."""
    inbox = Inbox()
    made: list[int] = []
    for number in range(100):
        inbox.post(lambda number=number: made.append(number))  # type: ignore[misc]  # bound at once
    rings = inbox._bell.qsize()
    assert inbox.wait(0.0)
    inbox.make_calls()

    assert (1, [*range(100)]) == (rings, made)
    assert (0, False) == (inbox._bell.qsize(), inbox.wait(0.0))


def test_a_call_that_rings_nobody_is_made_with_the_next() -> None:
    """It waits for a ring, or for the end of the wait; no call that came before is lost."""
    inbox = Inbox()
    made: list[str] = []
    inbox.add(lambda: made.append("quiet"))
    assert 0 == inbox._bell.qsize()
    inbox.post(lambda: made.append("loud"))
    assert inbox.wait(0.0)
    inbox.make_calls()

    assert ["quiet", "loud"] == made
