"""The reasoning parsers by name: how each family marks its thoughts, and when it has any."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from headway.errors import ConfigError


@dataclass(frozen=True, slots=True)
class ReasoningParser:
    """Thoughts stand between one of `begins` and one of `ends`. The first of each is the usual one.

    `thinks`: without anything in the prompt that says otherwise, an answer begins with thoughts, marked or not. `switch` is
    the template variable (`chat_template_kwargs`) that turns thinking on and off, where there is one.
    """

    name: str
    begins: tuple[str, ...] = ("<think>",)
    ends: tuple[str, ...] = ("</think>",)
    thinks: bool = False
    switch: str | None = None
    special_tokens: bool = False  # its marks are special tokens, which an answer otherwise leaves out

    def expects_thoughts(self, variables: Mapping[str, Any]) -> bool:
        said = variables.get(self.switch) if self.switch is not None else None
        return self.thinks if said is None else bool(said)

    def thoughts_are_open(self, prompt: str) -> bool | None:
        """Whether the prompt ends inside of thoughts (True) or behind them (False); None where it says neither."""
        end = prompt[-256:].rstrip()
        if end.endswith(self.begins):
            return True
        return False if end.endswith(self.ends) else None


_PARSERS: Final[Mapping[str, ReasoningParser]] = {
    parser.name: parser
    for parser in (
        ReasoningParser("think"),
        ReasoningParser("qwen3", thinks=True, switch="enable_thinking"),
        ReasoningParser("deepseek_r1", thinks=True),
        ReasoningParser("deepseek_v3", switch="thinking"),
        ReasoningParser("olmo3", thinks=True),
        ReasoningParser("mistral", ("[THINK]",), ("[/THINK]",), special_tokens=True),
        ReasoningParser(
            "granite",
            ("Here is my thought process:", "Here's my thought process:"),
            ("Here is my response:", "Here's my response:"),
            switch="thinking",
        ),
    )
}


def reasoning_parser(name: str) -> ReasoningParser:
    """Raises ConfigError, reason `unknown_reasoning_parser`, naming those there are."""
    if name not in _PARSERS:
        raise ConfigError(
            f"there is no reasoning parser {name[:100]!r}. There are {', '.join(sorted(_PARSERS))}",
            reason="unknown_reasoning_parser", param="reasoning-parser",
        )  # fmt: skip
    return _PARSERS[name]
