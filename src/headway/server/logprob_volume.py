"""How many log-probabilities one answer may hold. Each costs some 200 bytes of memory here and some 60 in the answer."""

from __future__ import annotations

from headway.errors import RequestError
from headway.server.engine_port import EnginePort

MAX_ENTRIES = 4_000_000  # 8192 prompt tokens with 20 alternatives each are 172,000


def check_volume(
    engine: EnginePort, param: str, prompt_tokens: int, of_prompt: int | None, new_tokens: int, of_new: int | None, choices: int
) -> None:
    """`prompt_tokens` of all prompts and `new_tokens` of one choice, with so many alternatives each (-1 = the vocabulary,
    None = no log-probabilities), in `choices` choices for each prompt. Raises RequestError naming `param`.
    """
    entries = choices * (_width(engine, of_prompt) * prompt_tokens + _width(engine, of_new) * new_tokens)
    if entries > MAX_ENTRIES:
        raise RequestError(
            f"the answer would hold up to {entries} log-probabilities, the limit is {MAX_ENTRIES}",
            param=param,
            fix="Ask for fewer alternatives, choices, prompts or tokens.",
        )


def _width(engine: EnginePort, asked: int | None) -> int:
    """Entries for one token: its own and the alternatives."""
    if asked is None:
        return 0
    return engine.vocab_size if asked == -1 else asked + 1
