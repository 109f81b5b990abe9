"""Request fields whose feature does not exist yet. They are refused by name, never ignored silently."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from headway.errors import NotBuiltError

Fields = Mapping[str, Any]


def _unset(value: Any, fields: Fields) -> bool:
    """The value asks for nothing."""
    return not value


@dataclass(frozen=True, slots=True)
class NotBuiltField:
    """`harmless(value, all fields)` tells values that ask for what a plain request does anyway."""

    name: str
    feature: str
    harmless: Callable[[Any, Fields], bool] = _unset
    fix: str = "Leave it out."


COMMON = (
    NotBuiltField(
        "best_of", "sampling more sequences than are returned", lambda v, f: v == (f.get("n") or 1), "Use n."
    ),
    NotBuiltField("prompt_embeds", "prompts given as embeddings"),
    NotBuiltField(
        "logits_processors", "logits processors that come with a request", fix="Load them with --logits-processors and "
        "pass their arguments in vllm_xargs.",
    ),
    NotBuiltField("repetition_detection", "stopping at repetitions"),
    NotBuiltField("return_token_offsets", "offsets of tokens"),
)
COMPLETION = (*COMMON, NotBuiltField("suffix", "filling in the middle"))
CHAT = (
    *COMMON,
    NotBuiltField("functions", "the old form of tool calling", fix="Use tools."),
    NotBuiltField("function_call", "the old form of tool calling", lambda v, _: v == "none", "Use tool_choice."),
    NotBuiltField("mm_processor_kwargs", "images, audio and video"),
    NotBuiltField("media_io_kwargs", "images, audio and video"),
    NotBuiltField("audio", "audio answers"),
    NotBuiltField("modalities", "audio answers", lambda v, _: v == ["text"], 'Leave it out or send ["text"].'),
    NotBuiltField("web_search_options", "web search"),
)
CHAT_ELSEWHERE = (*CHAT, NotBuiltField("kv_transfer_params", "moving of KV cache in this API"))  # chats that came through other routes


def refuse_not_built(table: tuple[NotBuiltField, ...], fields: Fields) -> None:
    """Raises NotBuiltError for the first field of `table` that asks for something."""
    for entry in table:
        value = fields.get(entry.name)
        if value is not None and not entry.harmless(value, fields):
            raise NotBuiltError(
                f"{entry.name} is not built yet: this version has no {entry.feature}", param=entry.name, fix=entry.fix
            )
