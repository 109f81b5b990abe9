"""Log-probabilities of tokens in the two shapes of OpenAI: parallel lists for completions, one list of objects for chat."""

from __future__ import annotations

from collections.abc import Sequence

from headway.engine.outputs import Logprob, PositionLogprobs
from headway.server.token_pieces import TextOffsets, TokenPieces
from headway.wire.chat import ChatLogprobs, TokenLogprob, TopLogprob
from headway.wire.completions import CompletionLogprobs

LOWEST = -9999.0  # JSON has no -inf


def clamped(logprob: float) -> float:
    return logprob if logprob >= LOWEST else LOWEST


class TokenNames:
    """How a token is called in an answer: by its text, or as `token_id:N` for clients that must tell all tokens apart."""

    def __init__(self, pieces: TokenPieces, as_ids: bool):
        self.pieces = pieces
        self._as_ids = as_ids

    def name(self, token_id: int) -> str:
        return f"token_id:{token_id}" if self._as_ids else self.pieces.text(token_id)


class CompletionLogprobWriter:
    """Writes the lists of one choice, in as many parts as the answer is sent in."""

    def __init__(self, names: TokenNames, skip_special: bool):
        self._names = names
        self._skip_special = skip_special
        self._offsets = TextOffsets(names.pieces, skip_special)

    def prompt(
        self, token_ids: Sequence[int], rows: Sequence[PositionLogprobs | None], text_length: int
    ) -> CompletionLogprobs:
        """The echoed prompt. Where the pieces spell more than the text (a dropped leading space), the offsets are moved."""
        written = self._write(token_ids, rows)
        surplus = max(0, self._offsets.position - text_length)
        written["text_offset"] = [max(0, offset - surplus) for offset in written["text_offset"]]
        self._offsets = TextOffsets(self._names.pieces, self._skip_special, start=text_length)
        return written

    def output(self, token_ids: Sequence[int], rows: Sequence[PositionLogprobs | None]) -> CompletionLogprobs:
        return self._write(token_ids, rows)

    def _write(self, token_ids: Sequence[int], rows: Sequence[PositionLogprobs | None]) -> CompletionLogprobs:
        return {
            "text_offset": self._offsets.next(token_ids),
            "token_logprobs": [_of(token_id, row) for token_id, row in zip(token_ids, rows, strict=True)],
            "tokens": [self._names.name(token_id) for token_id in token_ids],
            "top_logprobs": [None if row is None else self._top(row) for row in rows],
        }

    def _top(self, row: PositionLogprobs) -> dict[str, float]:
        """By name; where several tokens share one (halves of characters), the most probable is kept."""
        top: dict[str, float] = {}
        for token_id, entry in sorted(row.items(), key=_by_probability):
            top.setdefault(self._names.name(token_id), clamped(entry.logprob))
        return top


def joined(first: CompletionLogprobs, then: CompletionLogprobs) -> CompletionLogprobs:
    return {
        "text_offset": first["text_offset"] + then["text_offset"],
        "token_logprobs": first["token_logprobs"] + then["token_logprobs"],
        "tokens": first["tokens"] + then["tokens"],
        "top_logprobs": first["top_logprobs"] + then["top_logprobs"],
    }


def chat_logprobs(
    names: TokenNames, token_ids: Sequence[int], rows: Sequence[PositionLogprobs], top: int, always: Sequence[int] = ()
) -> ChatLogprobs:
    """`top` alternatives for each token, best first, and the tokens of `always`; -1 = all that the engine gave, 0 = none."""
    kept = frozenset(always)
    return {"content": [_chat_entry(names, token_id, row, top, kept) for token_id, row in zip(token_ids, rows, strict=True)]}


def _chat_entry(names: TokenNames, token_id: int, row: PositionLogprobs, top: int, always: frozenset[int]) -> TokenLogprob:
    ranked = sorted(row.items(), key=_by_probability)
    shown = ranked if top < 0 else [*ranked[:top], *(item for item in ranked[top:] if item[0] in always)]
    alternatives = [_chat_top(names, i, entry) for i, entry in shown]
    return {**_chat_top(names, token_id, row[token_id]), "top_logprobs": alternatives}


def _chat_top(names: TokenNames, token_id: int, entry: Logprob) -> TopLogprob:
    return {"token": names.name(token_id), "logprob": clamped(entry.logprob), "bytes": names.pieces.bytes(token_id)}


def prompt_logprob_table(names: TokenNames, rows: Sequence[PositionLogprobs | None]) -> list[dict[str, object] | None]:
    """`prompt_logprobs` of an answer: for each prompt token {token id: {logprob, rank, decoded_token}}, null for the first."""
    return [
        None
        if row is None
        else {
            str(token_id): {
                "logprob": clamped(entry.logprob),
                "rank": entry.rank,
                "decoded_token": names.pieces.text(token_id),
            }
            for token_id, entry in row.items()
        }
        for row in rows
    ]


def _of(token_id: int, row: PositionLogprobs | None) -> float | None:
    return None if row is None else clamped(row[token_id].logprob)


def _by_probability(item: tuple[int, Logprob]) -> tuple[float, int]:
    return (-item[1].logprob, item[0])
