"""Admission: how many unanswered jobs and tokens one model may have; a group of jobs comes in as a whole or not at all."""

from __future__ import annotations

from headway.errors import QueueFullError


class Admission:
    """Counts every job from its admission to its answer, whether it waits or runs, and the tokens that it asked for."""

    def __init__(self, max_jobs: int, max_tokens: int):
        self.max_jobs = max_jobs
        self.max_tokens = max_tokens
        self.jobs = 0
        self.tokens = 0

    def admit(self, jobs: int, tokens: int) -> None:
        """Raises QueueFullError, and then nothing is counted.

        A group that is too large by itself is admitted when nothing is pending: otherwise it never would be.
        """
        full = self.jobs + jobs > self.max_jobs or self.tokens + tokens > self.max_tokens
        if full and self.jobs > 0:
            raise QueueFullError(
                f"The queue of this model is full: {self.jobs} requests with {self.tokens} tokens are unanswered, "
                f"the limits are {self.max_jobs} and {self.max_tokens}",
                fix="Send it again later.",
            )
        self.jobs += jobs
        self.tokens += tokens

    def grow(self, tokens: int) -> None:
        """A job that has been admitted asks for another round: never refused."""
        self.tokens += tokens

    def release(self, tokens: int) -> None:
        """One job has been answered, has failed or was given up; `tokens` of all its rounds."""
        self.jobs -= 1
        self.tokens -= tokens
