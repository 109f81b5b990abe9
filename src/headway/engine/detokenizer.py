"""Turns the token ids of one sequence into text as they come: never half a character, never a look back.

Tokens are pushed one by one. For byte-exact tokenizers each adds its bytes to a UTF-8 decoder; other tokenizers are
decoded over a window of a few tokens. Either way the cost of a token does not grow with the length of the text.
"""

from __future__ import annotations

import codecs
from collections.abc import Sequence
from typing import Final

from headway.artifacts.tokenizer import Tokenizer

_MAX_UTF8_TAIL: Final = 3  # bytes of an unfinished character
_MAX_UNDECIDED: Final = 4  # a character has four bytes, so at most four tokens
_GROUPS: Final = 2  # of at most _MAX_UNDECIDED tokens: what a decoder without exact pieces may look back at
_PROMPT_CONTEXT: Final = 8


class Detokenizer:
    """The text of one sequence that continues `prompt_ids`.

    The joined results of `push`, and `flush` at the end, are the text that the ids add to the prompt: what `decode`
    gives for prompt and ids together, less the prompt. When the prompt ends inside a character that the ids complete,
    the text begins with that character.

    `spaces_between_special_tokens` false removes the blank that some decoders put between neighbouring added tokens;
    it matters only when special tokens are shown.
    """

    __slots__ = ("_stream",)

    def __init__(self, tokenizer: Tokenizer, skip_special_tokens: bool = True,
                 spaces_between_special_tokens: bool = True, prompt_ids: Sequence[int] = ()):  # fmt: skip
        hidden = tokenizer.special_ids if skip_special_tokens else frozenset[int]()
        self._stream: _ByteStream | _WindowStream
        if tokenizer.byte_exact:
            self._stream = _ByteStream(tokenizer, hidden, prompt_ids)
        else:
            tight = not (skip_special_tokens or spaces_between_special_tokens)
            self._stream = _WindowStream(tokenizer, hidden, prompt_ids, tight)

    def push(self, token_id: int) -> str:
        """The text that became certain with this token; "" while a character is unfinished or the token is hidden."""
        return self._stream.push(token_id)

    def flush(self) -> str:
        """The rest at the end of the sequence: U+FFFD for an unfinished character, otherwise nothing."""
        return self._stream.flush()


class _ByteStream:
    """Concatenated bytes through an incremental UTF-8 decoder.

    `_start` and `_tail` are None once the beginning of the text, and the end of the prompt, no longer matter.
    """

    __slots__ = ("_hidden", "_start", "_tail", "_tokenizer", "_utf8", "_waiting")

    def __init__(self, tokenizer: Tokenizer, hidden: frozenset[int], prompt_ids: Sequence[int]):
        self._tokenizer = tokenizer
        self._hidden = hidden
        self._utf8 = codecs.getincrementaldecoder("utf-8")("replace")
        self._start = tokenizer.text_start()
        for i in prompt_ids:
            if self._start is None or self._start.settled:
                break
            if i not in hidden:
                tokenizer.start_piece(self._start, i)
        if self._start is not None and self._start.settled:
            self._start = None
        self._tail: bytes | None = self._unfinished(prompt_ids)
        self._waiting = b""

    def _unfinished(self, prompt_ids: Sequence[int]) -> bytes | None:
        """The bytes of the character that the prompt leaves unfinished, or None."""
        end = b""
        for i in reversed(prompt_ids):
            if len(end) > _MAX_UTF8_TAIL:
                break
            if i not in self._hidden:
                end = self._tokenizer.token_bytes(i) + end
        end = end[-_MAX_UTF8_TAIL:]
        for at in range(len(end)):
            if _is_open(end[at:]):
                return end[at:]
        return None

    def push(self, token_id: int) -> str:
        if token_id in self._hidden:
            return ""
        if self._start is None:
            added = self._tokenizer.token_bytes(token_id)
        else:
            added = self._tokenizer.start_piece(self._start, token_id)
            if self._start.settled:
                self._start = None
        if self._tail is not None:
            added = self._after_tail(added)
        return self._utf8.decode(added)

    def _after_tail(self, added: bytes) -> bytes:
        """Put the unfinished end of the prompt in front once it is completed; drop it when it is not."""
        assert self._tail is not None
        waiting = self._waiting + added
        if _is_open(self._tail + waiting):
            self._waiting = waiting
            return b""
        # Valid now means completed: the first character of a decoded text is then no U+FFFD.
        completed = not (self._tail + waiting).decode("utf-8", "replace").startswith("\ufffd")
        out = self._tail + waiting if completed else waiting
        self._tail, self._waiting = None, b""
        return out

    def flush(self) -> str:
        return self._utf8.decode(self._waiting, final=True)


def _is_open(data: bytes) -> bool:
    """True when `data` is the beginning of one character and not yet a whole one."""
    try:
        return bool(data) and codecs.getincrementaldecoder("utf-8")().decode(data) == ""
    except UnicodeDecodeError:
        return False


class _WindowStream:
    """For decoders that are no function of single tokens: decode a few tokens twice, without and with the new ones.

    The tokens in front are kept in the groups in which their text was given out, so that no window begins inside a
    character.
    """

    __slots__ = ("_after_added", "_groups", "_hidden", "_new", "_tight", "_tokenizer")

    def __init__(self, tokenizer: Tokenizer, hidden: frozenset[int], prompt_ids: Sequence[int], tight: bool):
        self._tokenizer = tokenizer
        self._hidden = hidden
        self._tight = tight
        self._new: list[int] = []
        last: list[int] = []
        for i in reversed(prompt_ids):
            if len(last) == _PROMPT_CONTEXT:
                break
            if i not in hidden and tokenizer.token_name(i) is not None:
                last.insert(0, i)
        for _ in range(_MAX_UNDECIDED - 1):
            if not self._decode(last).startswith("\ufffd"):
                break
            del last[0]
        self._groups = [last]
        self._after_added = bool(last) and last[-1] in tokenizer.added_ids

    def push(self, token_id: int) -> str:
        name = self._tokenizer.token_name(token_id)
        if token_id in self._hidden or name is None:
            return ""
        is_added = token_id in self._tokenizer.added_ids
        bare = self._tight and is_added and self._after_added and not self._new
        self._after_added = is_added
        self._new.append(token_id)
        if bare:
            self._give_out()
            return name
        return self._take(final=False)

    def flush(self) -> str:
        return self._take(final=True) if self._new else ""

    def _take(self, final: bool) -> str:
        context = [i for group in self._groups for i in group]
        before = self._decode(context)
        after = self._decode(context + self._new)
        if after.endswith("\ufffd") and len(self._new) < _MAX_UNDECIDED and not final:
            return ""
        self._give_out()
        return after[len(before) :] if after.startswith(before) else after[_common_length(before, after) :]

    def _give_out(self) -> None:
        self._groups = [*self._groups, self._new][-_GROUPS:]
        self._new = []

    def _decode(self, ids: Sequence[int]) -> str:
        return self._tokenizer.decode(ids, skip_special_tokens=False)


def _common_length(one: str, other: str) -> int:
    return next((i for i, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))
