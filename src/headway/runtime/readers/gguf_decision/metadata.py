"""What a GGUF file says about its decisions. Keys and kinds as llama.cpp b11434 writes them; see docs/families.md."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NoReturn

from headway.artifacts.gguf_header import read_gguf_header
from headway.decisions.question import QuestionType
from headway.errors import HeadwayError, PackageError

TEMPLATE_KEY: Final = "tokenizer.chat_template.systemone"
LABEL_KINDS: Final = ("openjev", "lev", "nimble")
MARKER_KIND: Final = "laya"
# Kinds that llama.cpp knows and this runtime does not read, and why.
OTHER_KINDS: Final[Mapping[str, str]] = {
    "kev": "its pointer is read from the layout of Hugging Face only",
    "clef": "its joint head over all questions is not built",
    "pplx-decider": "its layout in GGUF is not published",
    "vllm-decision2": "its layout in GGUF is not published; the Hugging Face layout is served",
    "vllm-d3": "its layout in GGUF is not published; the Hugging Face layout is served",
    **dict.fromkeys(
        ("lfm2-d1", "lfm2-d1-omni", "lfm3-d1", "lfm3-d1-omni", "granite-switch", "h2o-lightning", "minicpm-ocr-jev"),
        "its layout is not published",
    ),
}
# Names of option-count buckets in keys, by the largest count of each.
_BUCKETS: Final = ((2, "2"), (5, "3_5"), (10, "6_10"), (255, "11"))
_LEV_BUCKETS: Final = ((8, "small"), (26, "mid"), (255, "large"))


@dataclass(frozen=True, slots=True)
class DecisionMetadata:
    """`temperatures` by "<type>" and "<type>.<bucket>". `head_blocks` and `head_tokens` are of marker models, else 0."""

    architecture: str
    kind: str
    template: str
    temperatures: Mapping[str, float]
    head_blocks: int
    head_tokens: int

    def temperature(self, kind: QuestionType, options: int) -> float:
        """1 where the file has none."""
        buckets = _LEV_BUCKETS if self.kind == "lev" else _BUCKETS
        bucket = next(name for most, name in buckets if options <= most)
        return self.temperatures.get(f"{kind}.{bucket}", self.temperatures.get(kind, 1.0))


def decision_kind(path: Path) -> str | None:
    """The kind that the file states, or None: also for what is no GGUF file."""
    try:
        metadata = read_gguf_header(path).metadata
    except (HeadwayError, OSError):
        return None
    found = metadata.get(f"{metadata.get('general.architecture')}.decision.type")
    return found if isinstance(found, str) else None


def read_decision_metadata(path: Path) -> DecisionMetadata:
    """Raises PackageError (`unsupported_layout`, `invalid_package`)."""
    metadata = read_gguf_header(path).metadata
    architecture = str(metadata.get("general.architecture"))
    prefix = f"{architecture}.decision."
    kind = str(metadata.get(f"{prefix}type"))
    if kind not in (*LABEL_KINDS, MARKER_KIND):
        why = OTHER_KINDS.get(kind, "no such kind is known")
        raise PackageError(
            f"{path.name} is a decision model of the kind {kind!r:.60}: {why}", reason="unsupported_layout", param=f"{prefix}type",
            fix=f"Served from GGUF are {', '.join((*LABEL_KINDS, MARKER_KIND))}.",
        )  # fmt: skip
    template = metadata.get(TEMPLATE_KEY)
    if not isinstance(template, str):
        _invalid(path, TEMPLATE_KEY, "a chat template named systemone")
    stem = f"{prefix}temperature."
    temperatures = {key.removeprefix(stem): _temperature(path, key, value) for key, value in metadata.items() if key.startswith(stem)}
    if kind != MARKER_KIND:
        return DecisionMetadata(architecture, kind, template, temperatures, 0, 0)
    blocks, tokens = (_count(path, f"{prefix}{name}", metadata) for name in ("block_count", "max_head_tokens"))
    return DecisionMetadata(architecture, kind, template, temperatures, blocks, tokens)


def _temperature(path: Path, key: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < float("inf"):
        _invalid(path, key, "a temperature above 0")
    return float(value)


def _count(path: Path, key: str, metadata: Mapping[str, Any]) -> int:
    value = metadata.get(key)
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= 1 << 20:
        _invalid(path, key, "a number from 1 on")
    return value


def _invalid(path: Path, key: str, wanted: str) -> NoReturn:
    raise PackageError(f"{path.name}: {key} must be {wanted}", reason="invalid_package", param=key, fix="Convert the model again.")
