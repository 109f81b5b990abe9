"""Runs logits processors: keeps every request at an index of its own while it runs, and guards against what they do wrong."""

from __future__ import annotations

from collections.abc import Sequence as Many

import torch

from headway.engine.logits_processor import Added, BatchUpdate, LogitsProcessor, MoveDirectionality, OutputTokens
from headway.engine.sequence import Sequence
from headway.errors import LogitsProcessorError


class ProcessorRows:
    """The sequences at their indices, and the processors that know them by these."""

    def __init__(self, processors: Many[LogitsProcessor]):
        self._processors = tuple(processors)
        self._rows: list[Sequence] = []
        self._order: list[int] = []  # index of each sequence of the step

    def update(self, sequences: list[Sequence]) -> None:
        """Before the others in every step. Raises LogitsProcessorError."""
        change = self._change(sequences)
        at = {id(s): i for i, s in enumerate(self._rows)}
        self._order = [at[id(s)] for s in sequences]
        for processor in self._processors:
            try:
                processor.update_state(change)
            except Exception as error:
                self._rows = []  # what the processors know is in doubt: everybody is removed and added again
                raise _failed(processor, error) from error

    def apply(self, logits: torch.Tensor, *, argmax_invariant: bool) -> dict[int, str]:
        """Change `logits` [N, V] in place, rows in the order of `update`. Returns which rows went wrong, and how.

        Raises LogitsProcessorError where a processor fails as a whole.
        """
        chosen = [p for p in self._processors if p.is_argmax_invariant() == argmax_invariant]
        errors: dict[int, str] = {}
        for processor in chosen:
            before = logits.isnan().any(-1)
            inside = torch.empty_like(logits)
            inside[self._order] = logits
            try:
                result = processor.apply(inside)
            except Exception as error:
                raise _failed(processor, error) from error
            if not isinstance(result, torch.Tensor) or result.shape != logits.shape:
                found = list(result.shape) if isinstance(result, torch.Tensor) else type(result).__name__
                raise LogitsProcessorError(f"logits processor {_name(processor)} returned {found}, expected a tensor of {list(logits.shape)}")
            logits.copy_(result[self._order])
            for row in torch.nonzero(logits.isnan().any(-1) & ~before).flatten().tolist():
                errors.setdefault(row, f"logits processor {_name(processor)} made a NaN of a number")
        return errors

    def _change(self, sequences: list[Sequence]) -> BatchUpdate | None:
        """Gaps are filled with newcomers, then from the end, as in vLLM."""
        rows = self._rows
        staying = {id(s) for s in sequences}
        known = {id(s) for s in rows}
        removed = [i for i, s in enumerate(rows) if id(s) not in staying]
        new = [s for s in sequences if id(s) not in known]
        if not removed and not new:
            return None
        gaps = list(removed)
        added: list[Added] = []
        for sequence in new:
            index = gaps.pop(0) if gaps else len(rows)
            rows[index : index + 1] = [sequence]
            prompt = sequence.tokens[: sequence.num_prompt]
            added.append((index, sequence.params, prompt, OutputTokens(sequence.tokens, sequence.num_prompt)))
        moved = []
        for gap in gaps:
            while rows and id(rows[-1]) not in staying:
                rows.pop()
            if gap >= len(rows):
                break
            moved.append((len(rows) - 1, gap, MoveDirectionality.UNIDIRECTIONAL))
            rows[gap] = rows.pop()
        filled = {index for index, *_ in added}
        return BatchUpdate(len(rows), [i for i in removed if i not in filled], added, moved)


def _name(processor: LogitsProcessor) -> str:
    return f"{type(processor).__module__}:{type(processor).__qualname__}"


def _failed(processor: LogitsProcessor, error: Exception) -> LogitsProcessorError:
    return LogitsProcessorError(f"logits processor {_name(processor)} failed: {type(error).__name__}: {str(error)[:200]}")
