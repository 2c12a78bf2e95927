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
