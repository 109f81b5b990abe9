"""Pictures that the configuration names as candidates, as data URLs."""

from __future__ import annotations

import base64
import mimetypes
from collections.abc import Callable, Iterable
from pathlib import Path

from headway.errors import ConfigError

_MOST_BYTES = 16 * 1024 * 1024


def image_inputs(references: Iterable[str], place: Callable[[str], Path]) -> list[dict[str, str]]:
    """`{"image": data-url}` for each data URL or name of a file; `place` knows where it is.

    Raises ConfigError for a file that cannot be read, or is too large, and for addresses of the network: nothing is fetched.
    """
    return [{"image": reference if reference.startswith("data:image/") else _of_file(reference, place)} for reference in references]


def _of_file(reference: str, place: Callable[[str], Path]) -> str:
    if "://" in reference:
        raise ConfigError(f"image candidate {reference!r:.80} is an address; pictures are not fetched", param="image_candidates",
                          fix="Name a file on this machine, or a data: URL.")  # fmt: skip
    path = place(reference)
    try:
        if path.stat().st_size > _MOST_BYTES:
            raise ConfigError(f"image candidate {reference!r:.80} has more than {_MOST_BYTES} bytes", param="image_candidates")
        content = path.read_bytes()
    except OSError as error:
        raise ConfigError(f"image candidate {reference!r:.80} cannot be read: {error.strerror}", param="image_candidates") from error
    media = mimetypes.guess_type(path.name)[0] or "image/png"
    return f"data:{media};base64,{base64.b64encode(content).decode('ascii')}"
