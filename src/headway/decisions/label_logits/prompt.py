"""The prompt of a question: the state first, so that all questions about it share their beginning."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from headway.artifacts.chat_template import render_chat_template
from headway.artifacts.tokenizer import Tokenizer
from headway.errors import RequestError

SYSTEM: Final = "You read a text and answer a question about it. Reply with one of the given codes and nothing else."
_MARK: Final = "\ue000the-text-goes-here\ue001"  # private-use characters: no template has them
_PLAIN_REPLY: Final = "\n\nAnswer:"


@dataclass(frozen=True, slots=True)
class Frame:
    """What stands around the text of a question. The reply begins after `after` and `lead`; `adds_special`: the tokenizer's
    own beginning of sequence belongs before it, since no template writes it."""

    before: str
    after: str
    lead: str
    adds_special: bool


def frame_of(tokenizer: Tokenizer) -> Frame:
    """From the chat template (without thinking, where it can be switched off), or a plain one for models that have none.

    A template that knows no system message gets its text at the start of the user's.
    """
    template = tokenizer.chat_template
    if template is None:
        return Frame(f"{SYSTEM}\n\n", _PLAIN_REPLY, " ", True)
    chat: list[dict[str, Any]] = [{"role": "system", "content": SYSTEM}, {"role": "user", "content": _MARK}]
    try:
        rendered = _rendered(tokenizer, template, chat)
        if SYSTEM not in rendered:
            raise RequestError("the template drops the system message")
    except RequestError:
        rendered = _rendered(tokenizer, template, [{"role": "user", "content": f"{SYSTEM}\n\n{_MARK}"}])
    before, found, after = rendered.partition(_MARK)
    if not found or _MARK in after:
        return Frame(f"{SYSTEM}\n\n", _PLAIN_REPLY, " ", True)
    return Frame(before, after, "", False)


def completion_frame(tokenizer: Tokenizer) -> Frame:
    """For models that continue texts better than they follow instructions: no chat, the answer follows `Answer:`."""
    return Frame("", "\nAnswer:", " ", tokenizer.adds_bos)


def _rendered(tokenizer: Tokenizer, template: str, chat: Sequence[dict[str, Any]]) -> str:
    return render_chat_template(template, chat, special_tokens=tokenizer.special_tokens, variables={"enable_thinking": False})


class PromptIds:
    """Prompts -> token ids. The part up to the question is tokenized once for all questions about a state, if the tokenizer
    never joins characters across that place; else every prompt is tokenized as a whole."""

    def __init__(self, tokenizer: Tokenizer, frame: Frame):
        self._tokenizer = tokenizer
        self._frame = frame
        self.divides = all(self._divides(state_text(state), f"\n\nQuestion: {question}") for state, question in _PROBES)

    def head(self, text: str) -> list[int]:
        return self._tokenizer.encode(self._frame.before + text, add_special_tokens=self._frame.adds_special)

    def prompt(self, head: str, head_ids: list[int], tail: str) -> tuple[int, ...]:
        """`head_ids` are those of `head`."""
        if self.divides:
            return (*head_ids, *self._tokenizer.encode(tail + self._frame.after, add_special_tokens=False))
        return tuple(self.head(head + tail + self._frame.after))

    def _divides(self, head: str, tail: str) -> bool:
        parts = [*self.head(head), *self._tokenizer.encode(tail + self._frame.after, add_special_tokens=False)]
        return parts == self.head(head + tail + self._frame.after)


def state_text(state: str) -> str:
    """How a prompt begins: what the question is about. It ends in a letter, and what follows begins with line ends: no
    tokenizer that splits words joins those, while it may join line ends with blanks or signs before them."""
    return f"Text:\n{state}\nEnd of text"


_PROBES: Final = (
    ("A plain text.", "Which?\nA. one\nB. two"), ("ends in blanks  \n\n ", "  Which one\n?"), ("日本語のテキスト。", "質問は何ですか？"),
    ('{"a": [1, 2]}', "{}"), ("🙂🙂", "🙂?"), ("Ä\u0308 e\u0301", "\u0301?"), ("x" * 300, "y" * 300),
)  # fmt: skip
