"""--limit-mm-per-prompt and --mm-processor-kwargs, checked before a model is known."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from headway.errors import ConfigError, NotBuiltError

MOST_IMAGES: Final = 16  # of one prompt, where nothing is said
_LARGEST: Final = 1024
_OTHERS: Final = ("video", "audio")


def images_per_prompt(limits: Mapping[str, Any]) -> int:
    """Raises ConfigError, and NotBuiltError for a positive number of anything but images."""
    for name, value in limits.items():
        if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= _LARGEST:
            raise ConfigError(f"--limit-mm-per-prompt {name!r:.40} must be an integer from 0 to {_LARGEST}, got {value!r:.40}", param="limit_mm_per_prompt")
        if name in _OTHERS and value:
            raise NotBuiltError(f"--limit-mm-per-prompt {name}: {name} in prompts is not built", param="limit_mm_per_prompt", fix=f"Give {name} 0 or leave it out.")
        if name not in ("image", *_OTHERS):
            raise ConfigError(f"--limit-mm-per-prompt knows image, video and audio, got {name!r:.40}", param="limit_mm_per_prompt")
    found = limits.get("image", MOST_IMAGES)
    assert isinstance(found, int)
    return found
