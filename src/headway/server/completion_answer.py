"""Writes the answer of `/v1/completions` from engine outputs, streamed or whole."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import aclosing

from headway.engine.outputs import CompletionOutput, RequestOutput
from headway.server.answer_head import AnswerHead
from headway.server.event_stream import Frames
from headway.server.logprobs import CompletionLogprobWriter, joined, prompt_logprob_table
from headway.server.merged_outputs import Outputs
from headway.server.prompt_tokens import PromptTokens
from headway.server.state import ServerState
from headway.wire.chunks import completion_choice
from headway.wire.completions import CompletionAnswer, CompletionBody, CompletionChoice, CompletionLogprobs


class CompletionWriter:
    """Choice `p * n + i` is sequence i of prompt p."""

    def __init__(self, state: ServerState, body: CompletionBody, head: AnswerHead, prompts: Sequence[PromptTokens]):
        self._tokenizer = state.engine.tokenizer
        self._body = body
        self._head = head
        self._prompts = prompts
        self._show_tokens = body.max_tokens > 0
        self._logprobs: dict[int, CompletionLogprobWriter] = {}
        self._begun: set[int] = set()

    async def frames(self, outputs: Outputs) -> Frames:
        encoder = self._head.chunk_encoder("text_completion")
        usage = self._head.usage
        open_prompts = len(self._prompts)
        timings = b""
        async with aclosing(outputs):
            async for p, output in outputs:
                usage.add(p, output, self._show_tokens)
                open_prompts -= output.finished
                timings = self._head.last_member(output, len(self._prompts))
                for i, sequence in enumerate(output.outputs, 1):
                    choice = self._chunk(p, output, sequence)
                    if choice is not None:
                        ends = not open_prompts and i == len(output.outputs) and not self._head.closing_usage
                        running = usage.json() if self._head.running_usage else None
                        yield encoder.frame(choice, running, timings if ends else b"", last=ends)
        if self._head.closing_usage:
            yield encoder.frame(b"", usage.json(), timings, last=True)

    def whole(self, finals: Sequence[RequestOutput]) -> CompletionAnswer:
        choices = []
        for p, output in enumerate(finals):
            self._head.usage.add(p, output, self._show_tokens)
            choices += [self._choice(p, output, s) for s in sorted(output.outputs, key=lambda s: s.index)]
        return {
            "id": self._head.id,
            "object": "text_completion",
            "created": self._head.created,
            "model": self._head.model,
            "choices": choices,
            "service_tier": None,
            "system_fingerprint": self._head.fingerprint,
            "usage": self._head.usage.whole(),
            "kv_transfer_params": finals[0].kv_transfer_params,
            "ec_transfer_params": None,
            "metrics": self._head.timings(finals),
        }

    def _choice(self, p: int, output: RequestOutput, sequence: CompletionOutput) -> CompletionChoice:
        shown = sequence.token_ids if self._show_tokens else []
        finish_reason, stop_reason = self._ending(sequence)
        with_ids = self._body.return_token_ids
        table = None
        if self._body.prompt_logprobs is not None and output.prompt_logprobs is not None:
            table = prompt_logprob_table(self._head.names, output.prompt_logprobs)
        return {
            "index": self._index(p, sequence),
            "text": self._text(p, sequence, first=True),
            "logprobs": self._logprobs_of(p, output, sequence, first=True),
            "finish_reason": finish_reason,
            "stop_reason": stop_reason,
            "token_ids": shown if with_ids else None,
            "prompt_logprobs": table,
            "prompt_token_ids": self._prompts[p].ids if with_ids else None,
            "routed_experts": None,
        }

    def _chunk(self, p: int, output: RequestOutput, sequence: CompletionOutput) -> bytes | None:
        """None if there is nothing to tell, such as after half a character."""
        index = self._index(p, sequence)
        first = index not in self._begun
        self._begun.add(index)
        text = self._text(p, sequence, first)
        with_ids = self._body.return_token_ids
        if not (text or sequence.finish_reason or with_ids or self._body.logprobs is not None):
            return None
        return completion_choice(
            index,
            text,
            self._logprobs_of(p, output, sequence, first),
            *self._ending(sequence),
            token_ids=(sequence.token_ids if self._show_tokens else []) if with_ids else None,
            prompt_token_ids=self._prompts[p].ids if with_ids and first else None,
        )

    def _ending(self, sequence: CompletionOutput) -> tuple[str | None, int | str | None]:
        """With max_tokens 0 the limit ends the answer, whatever the token is that the engine made and nobody sees."""
        if self._show_tokens or sequence.finish_reason != "stop":
            return sequence.finish_reason, sequence.stop_reason
        return "length", None

    def _index(self, p: int, sequence: CompletionOutput) -> int:
        return p * self._body.n + sequence.index

    def _text(self, p: int, sequence: CompletionOutput, first: bool) -> str:
        text = sequence.text if self._show_tokens else ""
        return self._prompt_text(p) + text if self._body.echo and first else text

    def _prompt_text(self, p: int) -> str:
        prompt = self._prompts[p]
        return (
            self._tokenizer.decode(prompt.ids, self._body.skip_special_tokens) if prompt.text is None else prompt.text
        )

    def _logprobs_of(
        self, p: int, output: RequestOutput, sequence: CompletionOutput, first: bool
    ) -> CompletionLogprobs | None:
        if self._body.logprobs is None:
            return None
        index = self._index(p, sequence)
        if index not in self._logprobs:
            self._logprobs[index] = CompletionLogprobWriter(self._head.names, self._body.skip_special_tokens)
        writer = self._logprobs[index]
        echoed = None
        if self._body.echo and first and output.prompt_logprobs is not None:
            echoed = writer.prompt(self._prompts[p].ids, output.prompt_logprobs, len(self._prompt_text(p)))
        shown = self._show_tokens
        written = writer.output(sequence.token_ids if shown else [], (sequence.logprobs or []) if shown else [])
        return joined(echoed, written) if echoed else written
