"""How many bytes of pixels all requests together hold between their arrival and their end."""

from __future__ import annotations

import threading
import weakref

from headway.engine.images.prompt_images import PromptImages
from headway.errors import QueueFullError


class HeldPixels:
    """Safe to use from several threads."""

    def __init__(self, most: int):
        self._most = most
        self._held = 0
        self._lock = threading.Lock()

    @property
    def held(self) -> int:
        return self._held

    def hold(self, images: PromptImages) -> PromptImages:
        """`images`, counted until nobody has them any more. Raises QueueFullError (`images_full`), except where they are the only ones."""
        size = images.nbytes
        with self._lock:
            if self._held and self._held + size > self._most:
                raise QueueFullError(
                    f"images of waiting and running requests hold {self._held} bytes, {size} more would pass the limit of {self._most}",
                    reason="images_full", fix="Retry later or elsewhere.",
                )  # fmt: skip
            self._held += size
        weakref.finalize(images, self._let_go, size)
        return images

    def _let_go(self, size: int) -> None:
        with self._lock:
            self._held -= size
