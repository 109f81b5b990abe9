"""Writes the answer of `/v1/responses` from engine outputs, streamed or whole."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import aclosing
from typing import Any

from headway.engine.outputs import RequestOutput
from headway.server.answer_deltas import AnswerDeltas
from headway.server.event_stream import Frames
from headway.server.merged_outputs import Outputs
from headway.server.usage_count import UsageCount
from headway.wire.errors import error_body
from headway.wire.responses.answer import failed, finished, output_items, response_usage
from headway.wire.responses.events import ResponseEvents
from headway.wire.responses.items import Item

Response = dict[str, Any]


class ResponseWriter:
    """`response` is what is known before the answer; `keep` takes what becomes of it, before its client hears of it.

    `count_tokens` is the tokenizer: thoughts are counted by their text, since outputs do not tell which tokens they were.
    """

    def __init__(
        self, response: Response, deltas: AnswerDeltas, usage: UsageCount, count_tokens: Callable[[str], int], keep: Callable[[Response], None]
    ):
        self._response = response
        self._deltas = deltas
        self._usage = usage
        self._count_tokens = count_tokens
        self._keep = keep
        self._events = ResponseEvents()
        self._begun = False

    async def frames(self, outputs: Outputs) -> Frames:
        finish: str | None = None
        async with aclosing(outputs):
            async for _, output in outputs:
                self._usage.add(0, output)
                frames = self._begin()
                for sequence in output.outputs:
                    delta = self._deltas.next(sequence)
                    finish = delta.finish or finish
                    frames += self._events.say(delta)
                if frames:
                    yield b"".join(frames)
        last = self._events.close(finish)
        if not self._events.output:
            last += self._nothing_said(finish)
        response = finished(self._response, self._events.output, finish, self._counts(self._events.output))
        self._keep(response)
        yield b"".join([*last, self._events.event(f"response.{response['status']}", response=response)])

    def whole(self, finals: Sequence[RequestOutput]) -> Response:
        self._usage.add(0, finals[0])
        said = self._deltas.whole(finals[0].outputs[0])
        output = output_items(said)
        response = finished(self._response, output, said.finish, self._counts(output))
        self._keep(response)
        return response

    def failed(self, error: BaseException) -> bytes:
        """The last events of a stream that cannot go on."""
        last = [*self._begin(), *self._events.close("length")]
        return b"".join([*last, self._events.event("response.failed", response=self.fail(error))])

    def fail(self, error: BaseException) -> Response:
        response = failed(self._response, self._events.output, error_body(error)["error"]["message"])
        self._keep(response)
        return response

    def _begin(self) -> list[bytes]:
        if self._begun:
            return []
        self._begun = True
        return [self._events.begin(self._response)]

    def _nothing_said(self, finish: str | None) -> list[bytes]:
        """An answer without a word is one empty message, as in an answer that is not streamed."""
        return [*self._events.say_nothing(), *self._events.close(finish)]

    def _counts(self, output: Sequence[Item]) -> dict[str, Any]:
        counts = self._usage.whole()
        cached = counts["prompt_tokens_details"]
        thoughts = "".join(part["text"] for item in output if item["type"] == "reasoning" for part in item["content"])
        reasoning = min(self._count_tokens(thoughts), counts["completion_tokens"]) if thoughts else 0
        return response_usage(counts["prompt_tokens"], counts["completion_tokens"], cached["cached_tokens"] if cached else 0, reasoning)
