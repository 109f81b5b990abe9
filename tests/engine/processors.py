"""Logits processors for tests."""

from __future__ import annotations

from typing import Any

import torch

from headway.engine.logits_processor import (
    AdapterLogitsProcessor,
    BatchUpdate,
    LogitsProcessor,
    RequestLogitsProcessor,
    process_dict_updates,
)
from headway.engine.sampling_params import SamplingParams


class Force(LogitsProcessor):
    """extra_args {"force": token}: nothing else is possible; with "after": k only from the k-th token on."""

    invariant = False

    def __init__(self, vllm_config: Any, device: torch.device, is_pin_memory: bool) -> None:
        assert vllm_config.model
        assert device.type == "cpu"
        assert not is_pin_memory
        self.states: dict[int, tuple[dict[str, Any], Any]] = {}
        self.updates: list[BatchUpdate | None] = []

    @classmethod
    def validate_params(cls, sampling_params: SamplingParams) -> None:
        token = (sampling_params.extra_args or {}).get("force", 0)
        if not isinstance(token, int):
            raise ValueError(f"force must be a token id, got {token!r}")

    def is_argmax_invariant(self) -> bool:
        return self.invariant

    def update_state(self, batch_update: BatchUpdate | None) -> None:
        self.updates.append(batch_update)
        process_dict_updates(
            self.states, batch_update, lambda params, prompt, output: ((params.extra_args or {}), output) if params.extra_args else None
        )

    def apply(self, logits: torch.Tensor) -> torch.Tensor:
        for row, (args, output) in self.states.items():
            if args.get("raise"):
                raise KeyError("injected")
            if args.get("nan"):
                logits[row, 3] = float("nan")
            if "force" in args and len(output) >= args.get("after", 0):
                kept = logits[row, args["force"]].clone()
                logits[row] = -float("inf")
                logits[row, args["force"]] = kept
        return logits


class Adapted(AdapterLogitsProcessor):
    """extra_args {"repeat": true}: the next token is the last one, the first that of the prompt's end."""

    def is_argmax_invariant(self) -> bool:
        return False

    def new_req_logits_processor(self, params: SamplingParams) -> RequestLogitsProcessor | None:
        if not (params.extra_args or {}).get("repeat"):
            return None

        def repeat(prompt: list[int], output: Any, row: torch.Tensor) -> torch.Tensor:
            token = output[-1] if len(output) else prompt[-1]
            return torch.full_like(row, -float("inf")).index_fill_(0, torch.tensor([token]), 0.0)

        return repeat


class Wrong(Force):
    """Returns fewer rows than it got."""

    def apply(self, logits: torch.Tensor) -> torch.Tensor:
        return logits[:, :5]


class Hidden(Force):
    """Claims that it never changes the likeliest token."""

    invariant = True
