"""What turns images and sounds of a request into rows, and how many of them one request may have."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Protocol, TypeAlias

from headway.errors import RequestError
from headway.runtime.row import Row
from headway.wire.embeddings import EmbeddingInput, Media

MAX_PREPARED_BYTES: Final = 256 << 20  # of one request: a picture of 500 bytes may become 700 kB of pixels


class UnreadableMedia(Exception):
    """One image or sound that cannot be used. The message completes "input 3 ..." and holds nothing of the input's content."""


@dataclass(frozen=True, slots=True)
class MediaLimits:
    """`prepared_bytes`: what one item occupies between its reading and its forward pass. `card`: entries of the model's limits."""

    prepared_bytes: int
    card: Mapping[str, int]


ReadMedia: TypeAlias = Callable[[bytes], Row]
"""The row has a digest of the input in `detail` and what the model sees in `payload`. Raises UnreadableMedia."""


class MediaReader(Protocol):
    """Of one modality. Called off the event loop, from several threads."""

    @property
    def limits(self) -> MediaLimits: ...

    def for_request(self) -> ReadMedia:
        """What reads the inputs of one request, one after the other, and may bound what they cost together."""
        ...


def most_media(reader: MediaReader) -> int:
    """How many inputs of this modality one request may have."""
    return MAX_PREPARED_BYTES // reader.limits.prepared_bytes


def refuse_many_media(inputs: Sequence[EmbeddingInput], readers: Mapping[str, MediaReader]) -> None:
    """Raises RequestError for more than fit `MAX_PREPARED_BYTES`, before any is read."""
    for modality, reader in readers.items():
        count = sum(isinstance(given, Media) and given.modality == modality for given in inputs)
        if count > most_media(reader):
            raise RequestError(f"at most {most_media(reader)} inputs of one request may be of the kind {modality}, found {count}",
                               param="input", fix="Send several requests.")  # fmt: skip
