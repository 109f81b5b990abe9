"""Writes the answer of `/v1/chat/completions` from engine outputs, streamed or whole."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import aclosing
from typing import Any

import orjson

from headway.engine.outputs import CompletionOutput, RequestOutput
from headway.server.answer_head import AnswerHead
from headway.server.answer_parts import AnswerPlan, AnswerReader
from headway.server.chat_parts import content, delta_members, tool_calls
from headway.server.event_stream import Frames
from headway.server.logprobs import chat_logprobs, prompt_logprob_table
from headway.server.merged_outputs import Outputs
from headway.server.prompt_tokens import PromptTokens
from headway.server.state import ServerState
from headway.wire.chat import ChatAnswer, ChatBody, ChatChoice, ChatLogprobs
from headway.wire.chunks import chat_choice, chat_delta
from headway.wire.messages import plain_messages


class ChatWriter:
    """Choice i is sequence i of the one prompt."""

    def __init__(self, state: ServerState, body: ChatBody, head: AnswerHead, prompt: PromptTokens, plan: AnswerPlan):
        self._body = body
        self._head = head
        self._prompt = prompt
        last = body.messages[-1]
        self._role: str = state.settings.response_role if body.opens_answer else last["role"]
        self._echoed = plain_messages([last])[0]["content"] if body.echo and last["role"] == self._role else ""
        self._begun: set[int] = set()
        self._plan = plan
        self._readers: dict[int, AnswerReader] = {}  # of choices whose answers have parts

    async def frames(self, outputs: Outputs) -> Frames:
        """Each choice begins with a chunk that carries the role and no text."""
        encoder = self._head.chunk_encoder("chat.completion.chunk")
        usage = self._head.usage
        extra = timings = b""
        if self._body.return_token_ids:
            extra = b',"prompt_token_ids":' + orjson.dumps(self._prompt.ids)
        async with aclosing(outputs):
            async for _, output in outputs:
                begun = [s.index for s in output.outputs if s.index not in self._begun]
                usage.begin(0, output)
                for index in begun:
                    self._begun.add(index)
                    yield encoder.frame(chat_choice(index, self._echoed, self._role), self._running_usage(), extra)
                    extra = b""
                usage.add(0, output)
                timings = self._head.last_member(output)
                for i, sequence in enumerate(output.outputs, 1):
                    choice = self._chunk(sequence)
                    if choice is not None:
                        ends = output.finished and i == len(output.outputs) and not self._head.closing_usage
                        yield encoder.frame(choice, self._running_usage(), timings if ends else b"", last=ends)
        if self._head.closing_usage:
            yield encoder.frame(b"", usage.json(), timings, last=True)

    def whole(self, finals: Sequence[RequestOutput]) -> ChatAnswer:
        output = finals[0]
        self._head.usage.add(0, output)
        with_ids = self._body.return_token_ids
        table: list[dict[str, Any] | None] | None = None
        if output.prompt_logprobs is not None:
            table = prompt_logprob_table(self._head.names, output.prompt_logprobs)
        return {
            "id": self._head.id,
            "object": "chat.completion",
            "created": self._head.created,
            "model": self._head.model,
            "choices": [self._choice(s) for s in sorted(output.outputs, key=lambda s: s.index)],
            "service_tier": None,
            "system_fingerprint": self._head.fingerprint,
            "usage": self._head.usage.whole(),
            "prompt_logprobs": table,
            "prompt_token_ids": self._prompt.ids if with_ids else None,
            "prompt_text": self._prompt.text if with_ids else None,
            "kv_transfer_params": output.kv_transfer_params,
            "ec_transfer_params": None,
            "metrics": self._head.timings(finals),
        }

    def _choice(self, sequence: CompletionOutput) -> ChatChoice:
        said = self._plan.whole(sequence.text, sequence.finish_reason, sequence.stop_reason)
        return {
            "index": sequence.index,
            "message": {
                "role": self._role,
                "content": content(self._echoed + said.text, said),
                "refusal": None,
                "annotations": None,
                "audio": None,
                "function_call": None,
                "tool_calls": tool_calls(said),
                "reasoning": said.reasoning or None,
            },
            "logprobs": self._logprobs_of(sequence),
            "finish_reason": said.finish,
            "stop_reason": sequence.stop_reason,
            "token_ids": sequence.token_ids if self._body.return_token_ids else None,
        }

    def _chunk(self, sequence: CompletionOutput) -> bytes | None:
        """None if there is nothing to tell, such as after half a character."""
        if not self._plan.is_plain:
            return self._chunk_of_parts(sequence)
        with_ids = self._body.return_token_ids
        if not (sequence.text or sequence.finish_reason or with_ids or self._body.logprobs):
            return None
        return chat_choice(
            sequence.index,
            sequence.text,
            None,
            self._logprobs_of(sequence),
            sequence.finish_reason,
            sequence.stop_reason,
            sequence.token_ids if with_ids else None,
        )

    def _chunk_of_parts(self, sequence: CompletionOutput) -> bytes | None:
        reader = self._readers.get(sequence.index)
        if reader is None:
            reader = self._readers[sequence.index] = self._plan.reader()
        said = reader.read(sequence.text, sequence.finish_reason, sequence.stop_reason)
        members = delta_members(said)
        with_ids = self._body.return_token_ids
        if not (members or said.finish or with_ids or self._body.logprobs):
            return None
        return chat_delta(
            sequence.index,
            orjson.dumps(members),
            self._logprobs_of(sequence),
            said.finish,
            sequence.stop_reason,
            sequence.token_ids if with_ids else None,
        )

    def _logprobs_of(self, sequence: CompletionOutput) -> ChatLogprobs | None:
        if not self._body.logprobs:
            return None
        return chat_logprobs(
            self._head.names, sequence.token_ids, sequence.logprobs or [], self._body.top_logprobs or 0, self._body.logprob_token_ids
        )

    def _running_usage(self) -> bytes | None:
        return self._head.usage.json() if self._head.running_usage else None
