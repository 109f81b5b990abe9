"""Writes the answer of `/v1/messages` from engine outputs, streamed or whole."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import aclosing
from typing import Any

from headway.engine.outputs import RequestOutput
from headway.server.answer_deltas import AnswerDeltas
from headway.server.answer_head import AnswerHead
from headway.server.event_stream import Frames
from headway.server.merged_outputs import Outputs
from headway.wire.anthropic.answer import message_usage, whole_message
from headway.wire.anthropic.events import MessageEvents


class MessageWriter:
    """Of one answer."""

    def __init__(self, head: AnswerHead, deltas: AnswerDeltas):
        self._head = head
        self._deltas = deltas

    async def frames(self, outputs: Outputs) -> Frames:
        events = MessageEvents()
        begun = False
        finish: str | None = None
        stop: str | None = None
        async with aclosing(outputs):
            async for _, output in outputs:
                self._head.usage.begin(0, output)
                frames = [] if begun else [events.begin(self._message(), self._counts())]
                begun = True
                self._head.usage.add(0, output)
                for sequence in output.outputs:
                    delta = self._deltas.next(sequence)
                    finish, stop = delta.finish or finish, delta.stop or stop
                    frames += events.say(delta)
                if frames:
                    yield b"".join(frames)
        yield events.end(finish, stop, self._counts())

    def whole(self, finals: Sequence[RequestOutput]) -> dict[str, Any]:
        self._head.usage.add(0, finals[0])
        return whole_message(self._message(), self._deltas.whole(finals[0].outputs[0]), self._counts())

    def _message(self) -> dict[str, Any]:
        return {"id": self._head.id, "type": "message", "role": "assistant", "model": self._head.model}

    def _counts(self) -> dict[str, int]:
        counts = self._head.usage.whole()
        cached = counts["prompt_tokens_details"]
        return message_usage(counts["prompt_tokens"], counts["completion_tokens"], cached["cached_tokens"] if cached else 0)
