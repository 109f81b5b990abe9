"""TileBudget: how many tiles one step may encode. An image of many tiles is read over several steps, so that answers go on beside it."""

from __future__ import annotations

from headway.engine.images.step_images import StepImages
from headway.engine.sequence import Sequence


class TileBudget:
    """At least one tile in each step, so that somebody always makes progress. Tiles whose rows are kept cost nothing."""

    def __init__(self, most: int, images: StepImages):
        self.most = max(1, most)
        self._images = images
        self._left = self.most
        self._planned: set[bytes] = set()

    def begin(self) -> None:
        """A new step."""
        self._left = self.most
        self._planned.clear()

    def cut(self, sequence: Sequence, start: int, count: int) -> int:
        """How many of the `count` tokens from `start` on this step can have; what they need is taken from the budget."""
        images = sequence.request.images
        if images is None:
            return count
        for tile in images.among(start, start + count):
            if tile.digest in self._planned or self._images.knows(tile.digest):
                continue
            if self._left == 0:
                return max(0, tile.start - start)
            self._left -= 1
            self._planned.add(tile.digest)
        return count
