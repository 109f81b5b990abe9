"""Old spellings of flags: what replaced them. Each use draws one warning "renamed to"."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple


class Renamed(NamedTuple):
    """`new` may be dotted. `value` is set for a switch that became a value of another flag."""

    new: str
    value: str | None = None


OLD_SPELLINGS: Mapping[str, Renamed] = {
    "speculative-model": Renamed("spec-model"),
    "num-speculative-tokens": Renamed("spec-tokens"),
    "speculative-method": Renamed("spec-method"),
    "ngram-prompt-lookup-max": Renamed("speculative-config.prompt_lookup_max"),
    "ngram-prompt-lookup-min": Renamed("speculative-config.prompt_lookup_min"),
    "disable-flash-attn": Renamed("attention-backend", "native"),
    "guided-decoding-backend": Renamed("structured-outputs-config.backend"),
}
