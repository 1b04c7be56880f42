"""How long the queue listener waits between polls."""

import random

from local.functions_host.host_json import MIN_POLLING_SECONDS


class PollingBackOff:
    """100 ms after a found message and at first, then doubling with jitter up to the maximum.

    The n-th wait in a row is 100 ms + 100 ms x 2^(n-2) x a random factor of 0.8 to 1.2; once it would pass the maximum
    it stays there until a message is found.
    """

    def __init__(self, max_seconds: float, rng: random.Random | None = None) -> None:
        self._max_seconds = max_seconds
        self._rng = rng or random.Random()
        self._empty_polls = 0

    def next_delay_seconds(self, *, found_message: bool) -> float:
        """The wait after a poll; `found_message` says whether anything was found since the previous wait."""
        if found_message:
            self._empty_polls = 0
        self._empty_polls += 1
        delay = MIN_POLLING_SECONDS
        if self._empty_polls > 1:
            doublings = min(self._empty_polls - 2, 32)
            delay += MIN_POLLING_SECONDS * 2**doublings * self._rng.uniform(0.8, 1.2)
        if delay >= self._max_seconds:
            self._empty_polls = max(self._empty_polls, 34)  # stay at the maximum
            return self._max_seconds
        return delay
