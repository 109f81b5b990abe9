"""Words of earlier versions that mean nothing any more, and what to use instead."""

from __future__ import annotations

from typing import Final

PROFILE: Final = "profile"
PROFILE_REMOVED: Final = (
    "profile was removed: requests share forward passes by default, and enable_shared_context, batch_window_ms and"
    " max_num_seqs tune a model"
)
