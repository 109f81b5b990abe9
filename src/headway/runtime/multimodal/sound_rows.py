"""Sounds of a request -> rows: log-mel features of both audio towers in the payload, a digest of the bytes in the detail.

Features are those of transformers' `WhisperFeatureExtractor` and `ClapFeatureExtractor`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from headway.errors import PackageError
from headway.runtime.multimodal.image_rows import digest_of
from headway.runtime.multimodal.resampling import mono_at
from headway.runtime.multimodal.wav import MAX_SECONDS, decode_wav
from headway.runtime.row import Row
from headway.runtime.tasks.media import MediaLimits, ReadMedia
from headway.wire.embeddings import MAX_MEDIA_BYTES

SOUND_READOUT: Final = "audio"
SPEECH_RATE: Final = 16_000
CLAP_RATE: Final = 48_000
WINDOW: Final = 10 * CLAP_RATE  # samples that CLAP hears at once
# A sound takes the towers of Nano about as long as a text of that many tokens takes its text tower (as vLLM-SR measured it).
SOUND_COST: Final = 1600
FloatArray = npt.NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class SoundFeatures:
    """`speech` [bins, frames] of 30 seconds, silence behind the end; `windows` [n, 1, frames, bins] of ten seconds each."""

    speech: FloatArray
    windows: FloatArray


class SoundReader:
    """`speech`, `clap`: preprocessor_config.json of the two towers. Raises PackageError (`invalid_package`) for others than were
    published."""

    def __init__(self, speech: Mapping[str, Any], clap: Mapping[str, Any]):
        import transformers  # seconds; other families never need it

        self._speech = transformers.WhisperFeatureExtractor(**_fields(speech))
        self._clap = transformers.ClapFeatureExtractor(**_fields(clap))
        if self._speech.sampling_rate != SPEECH_RATE or self._speech.n_samples != MAX_SECONDS * SPEECH_RATE:
            raise _refused("of the speech tower must be for 30 seconds at 16000 Hz")
        if self._clap.sampling_rate != CLAP_RATE or self._clap.nb_max_samples != WINDOW or self._clap.truncation != "rand_trunc":
            raise _refused("of the CLAP tower must be for 10 seconds at 48000 Hz, truncation rand_trunc (a tower without fusion)")

    @property
    def limits(self) -> MediaLimits:
        frames = self._speech.feature_size * self._speech.nb_max_frames
        windows = -(-MAX_SECONDS * CLAP_RATE // WINDOW) * (WINDOW // self._clap.hop_length + 1) * self._clap.feature_size
        return MediaLimits(4 * (frames + windows), {"audio_max_bytes": MAX_MEDIA_BYTES, "audio_max_seconds": MAX_SECONDS})

    def for_request(self) -> ReadMedia:
        return self._read

    def _read(self, data: bytes) -> Row:
        sound = decode_wav(data)
        speech = self._speech(mono_at(sound, SPEECH_RATE).numpy(), sampling_rate=SPEECH_RATE, return_tensors="np")["input_features"][0]
        wide = mono_at(sound, CLAP_RATE).numpy()
        parts = [wide[start : start + WINDOW] for start in window_starts(len(wide))]
        windows = self._clap(parts, sampling_rate=CLAP_RATE, truncation="rand_trunc", padding="repeatpad", return_tensors="np")["input_features"]
        return sound_row(digest_of(data), SoundFeatures(speech.astype(np.float32), windows.astype(np.float32)))


def sound_row(digest: str, features: SoundFeatures) -> Row:
    return Row((), SOUND_READOUT, detail=digest, payload=features, extra_cost=SOUND_COST)


def window_starts(samples: int) -> list[int]:
    """As few windows as cover everything; the first begins at the beginning, the last ends at the end, evenly spread between."""
    if samples <= WINDOW:
        return [0]
    count = -(-samples // WINDOW)
    return [number * (samples - WINDOW) // (count - 1) for number in range(count)]


def _fields(config: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in config.items() if not key.endswith("_type") and key not in ("processor_class", "nb_max_samples")}


def _refused(what: str) -> PackageError:
    return PackageError(f"preprocessor_config.json {what}", reason="invalid_package", param="preprocessor_config.json",
                         fix="Compare it with the model's original.")  # fmt: skip
