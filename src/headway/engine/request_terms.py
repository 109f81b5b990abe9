"""RequestTerms: how a request is handled, apart from what is asked and how it is sampled."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:  # servers answer before torch is there
    from headway.engine.images.prompt_images import PromptImages
    from headway.engine.kv_transfer.params import TransferParams
    from headway.engine.lora.adapter import Adapter


@dataclass(frozen=True, slots=True)
class RequestTerms:
    """`prompt_text` is the prompt as its author wrote it, for the output; `trace_headers` are the W3C Trace Context of the
    caller; `timeout` in seconds from the moment that the engine takes the request."""

    prompt_text: str | None = None
    priority: int = 0
    cache_salt: str | None = None
    trace_headers: Mapping[str, str] = field(default_factory=dict)
    timeout: float | None = None
    adapter: Adapter | None = None  # that the answer is made with
    images: PromptImages | None = None  # of the prompt
    kv_transfer: TransferParams | None = None  # another engine has the blocks of the prompt, or shall have them

    def deadline(self) -> float | None:
        """On the clock of time.monotonic, if it starts now."""
        return None if self.timeout is None else time.monotonic() + self.timeout


ORDINARY: Final = RequestTerms()
