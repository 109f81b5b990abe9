"""AnswerDeltas: the outputs of a chat as what its answer says next, for the APIs whose answers are one sequence."""

from __future__ import annotations

from dataclasses import replace

from headway.engine.outputs import CompletionOutput
from headway.server.answer_parts import AnswerPlan
from headway.server.logprobs import TokenNames, chat_logprobs
from headway.wire.answer_delta import Delta
from headway.wire.chat import ChatBody


class AnswerDeltas:
    """Of one answer, either in pieces or as a whole."""

    def __init__(self, body: ChatBody, names: TokenNames, plan: AnswerPlan):
        self._body = body
        self._names = names
        self._plan = plan
        self._reader = plan.reader()

    def next(self, sequence: CompletionOutput) -> Delta:
        delta = self._reader.read(sequence.text, sequence.finish_reason, sequence.stop_reason)
        return replace(delta, logprobs=self._logprobs(sequence)) if self._body.logprobs else delta

    def whole(self, sequence: CompletionOutput) -> Delta:
        delta = self._plan.whole(sequence.text, sequence.finish_reason, sequence.stop_reason)
        return replace(delta, logprobs=self._logprobs(sequence)) if self._body.logprobs else delta

    def _logprobs(self, sequence: CompletionOutput) -> tuple[dict[str, object], ...]:
        written = chat_logprobs(self._names, sequence.token_ids, sequence.logprobs or [], self._body.top_logprobs or 0)
        return tuple(dict(entry) for entry in written["content"])
