"""Helpers of jobs with a cursor: a loop that is interrupted anywhere does what one in one go does."""
