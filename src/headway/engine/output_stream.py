"""From sampled tokens to what a caller sees: text without half characters, cut at stop strings, with log-probabilities."""

from __future__ import annotations

from headway.artifacts.tokenizer import Tokenizer
from headway.engine.detokenizer import Detokenizer
from headway.engine.outputs import CompletionOutput, Logprob, OutputKind, PositionLogprobs, RequestOutput
from headway.engine.sampler import RankedLogprob, SampledToken
from headway.engine.sequence import Request, Sequence
from headway.engine.step_plan import Chunk
from headway.engine.stop_strings import StopStrings


class SequenceText:
    """The growing text of one sequence. Cost per token does not depend on how long the text already is."""

    def __init__(self, sequence: Sequence, tokenizer: Tokenizer):
        params = sequence.params
        self.sequence = sequence
        self.pieces: list[str] = []
        self.logprobs: list[PositionLogprobs] = []
        self.cumulative_logprob = 0.0
        self._tokenizer = tokenizer
        self._detokenizer = (
            Detokenizer(
                tokenizer,
                skip_special_tokens=params.skip_special_tokens,
                spaces_between_special_tokens=params.spaces_between_special_tokens,
                prompt_ids=sequence.tokens[: sequence.num_prompt],
            )
            if params.detokenize
            else None
        )
        self._stops = StopStrings(params.stop_strings, params.include_stop_str_in_output)
        self.sent_tokens = 0
        self.sent_pieces = 0
        self.due = False  # a token came at which the caller is to hear of the text

    def push(self, token: SampledToken, *, ends_here: bool) -> str | None:
        """Take the next token; returns the stop string that it completes, if any.

        `ends_here`: the token itself ended the sequence (EOS or a stop id); its text is then not part of the answer,
        unless the request asked to see what stopped it.
        """
        count, interval = self.sequence.num_output, self.sequence.params.stream_interval
        self.due = self.due or count == 1 or count % interval == 0
        if token.logprobs is not None:
            self.logprobs.append(position_logprobs(token.logprobs, self._tokenizer))
            self.cumulative_logprob += token.logprobs[0][1]
        if self._detokenizer is None:
            return None
        params = self.sequence.params
        if ends_here and not params.include_stop_str_in_output:
            return None
        may_match = self.sequence.num_output > params.min_tokens  # as vLLM: the first min_tokens tokens never end it
        return self._feed(self._detokenizer.push(token.token_id), may_match)

    def close(self) -> str | None:
        """The sequence is over: give out what was held back. Returns a stop string whose match was complete but waited
        for a longer one that began before it."""
        if self._detokenizer is None or self._stops.matched is not None:
            return None
        matched = self._feed(self._detokenizer.flush(), may_match=False)
        tail = "" if matched else self._stops.flush()
        if tail:
            self.pieces.append(tail)
        return self._stops.matched

    def _feed(self, text: str, may_match: bool) -> str | None:
        if not text:
            return None
        piece = self._stops.feed(text, may_match=may_match)
        if piece.text:
            self.pieces.append(piece.text)
        return piece.matched

    def output(self, *, delta: bool) -> CompletionOutput:
        """All of it, or with `delta` what came since the last call that said so."""
        sequence = self.sequence
        first_token = self.sent_tokens if delta else 0
        first_piece = self.sent_pieces if delta else 0
        self.due = False
        if delta:
            self.sent_tokens = sequence.num_output
            self.sent_pieces = len(self.pieces)
        wants_logprobs = sequence.params.logprobs is not None or bool(sequence.params.logprob_token_ids)
        return CompletionOutput(
            index=sequence.index,
            text="".join(self.pieces[first_piece:]),
            token_ids=sequence.tokens[sequence.num_prompt + first_token :],
            cumulative_logprob=self.cumulative_logprob if wants_logprobs else None,
            logprobs=self.logprobs[first_token:] if wants_logprobs else None,
            finish_reason=sequence.finish_reason,
            stop_reason=sequence.stop_reason,
            lora_request=sequence.request.lora_request,
        )


class RequestStream:
    """Collects what the sequences of a request produce and decides when the caller hears of it."""

    def __init__(self, request: Request, tokenizer: Tokenizer):
        self.request = request
        self.texts = [SequenceText(s, tokenizer) for s in request.sequences]
        self.num_open = len(self.texts)  # sequences that have not ended
        self._tokenizer = tokenizer
        self._prompt_logprobs: list[PositionLogprobs | None] | None = None
        if request.params.prompt_logprobs is not None:
            self._prompt_logprobs = [None] * len(request.prompt_token_ids)

    def add_sequence(self, sequence: Sequence) -> None:
        self.texts.append(SequenceText(sequence, self._tokenizer))
        self.num_open += 1

    @property
    def finished(self) -> bool:
        return self.num_open == 0 and self.request.unborn == 0

    def add_prompt_logprobs(self, chunk: Chunk, rows: list[list[RankedLogprob]]) -> None:
        """Rows of one chunk, for positions start + 1 and on. A chunk computed again after preemption just overwrites."""
        if self._prompt_logprobs is not None:
            for i, row in enumerate(rows, chunk.start + 1):
                self._prompt_logprobs[i] = position_logprobs(row, self._tokenizer)

    def output(self, touched: list[SequenceText]) -> RequestOutput | None:
        """What to tell the caller after `touched` sequences got a token or ended; None if it is not time yet."""
        kind = self.request.params.output_kind
        finished = self.finished
        if kind is OutputKind.FINAL_ONLY and not finished:
            return None
        delta = kind is OutputKind.DELTA
        shown = [t for t in touched if self._is_due(t)] if delta else self.texts
        if not shown or (not finished and not any(self._is_due(t) for t in touched)):
            return None
        first = any(t.sent_tokens == 0 for t in shown)  # n sequences may begin in different steps, each shows the prompt
        return RequestOutput(
            request_id=self.request.id,
            prompt=self.request.prompt,
            prompt_token_ids=self.request.prompt_token_ids,
            prompt_logprobs=self._prompt_logprobs if first or not delta else None,
            outputs=[t.output(delta=delta) for t in shown],
            finished=finished,
            lora_request=self.request.lora_request,
            num_cached_tokens=max(self.request.sequences[0].num_cached, 0),
            metrics=self._times() if finished else None,
            failure=next((t.sequence.failure for t in shown if t.sequence.failure), None),
            kv_transfer_params=self.request.kv_transfer_params,
            pooled=None if self.request.readout is None else self.request.readout.result,
        )

    def _times(self) -> dict[str, float] | None:
        """Monotonic seconds of the request's events, first and last of its sequences; None if it made no token."""
        times = [s.times for s in self.request.sequences if s.times.first_token]
        if not times:
            return None
        return {
            "arrival": min(t.arrival for t in times),
            "scheduled": min(t.scheduled for t in times),
            "first_token": min(t.first_token for t in times),
            "last_token": max(t.last_token for t in times),
            "generated_tokens": float(sum(s.num_output for s in self.request.sequences)),
        }

    def _is_due(self, text: SequenceText) -> bool:
        """With stream_interval k: the first token at once, then every k-th, and the end."""
        return text.sequence.finish_reason is not None or text.due


def position_logprobs(row: list[RankedLogprob], tokenizer: Tokenizer) -> PositionLogprobs:
    return {token: Logprob(value, rank, tokenizer.token_text(token)) for token, value, rank in row}
