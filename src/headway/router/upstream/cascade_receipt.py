"""CascadeReceipt: which models a cascade called, and what each of them used, for the headers of its answer."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import orjson

from headway.router.listener.usage import Usage, usage_of

_MOST_BYTES = 8000  # of a header; longer receipts are left out rather than cut


@dataclass(slots=True)
class Call:
    """`usage` None: the model did not answer, or nobody knows yet what it used, as of a stream that has just begun."""

    model: str
    status: str = "failed"
    usage: Usage | None = None

    def completed(self, answer: Mapping[str, Any] | None) -> None:
        self.status, self.usage = "completed", usage_of(answer) if answer is not None else None


@dataclass(slots=True)
class CascadeReceipt:
    began: float = field(default_factory=time.perf_counter)
    calls: list[Call] = field(default_factory=list)

    def begin(self, model: str) -> Call:
        self.calls.append(Call(model))
        return self.calls[-1]

    def headers(self, answered: str) -> dict[str, str]:
        """`answered` is the model whose answer the client gets. Sums of tokens are told only when every call's are known."""
        count = str(len(self.calls))
        found = {
            "x-vsr-looper-algorithm": "confidence",
            "x-vsr-looper-model": answered,
            "x-vsr-looper-models-used": ",".join(call.model for call in self.calls),
            "x-vsr-looper-iterations": count,
            "x-vsr-looper-latency-ms": f"{(time.perf_counter() - self.began) * 1000:.3f}",
            "x-vsr-inference-call-count": count,
        }
        usages = [call.usage for call in self.calls if call.usage is not None]
        complete = len(usages) == len(self.calls)
        if complete:
            prompt, completion = sum(usage.prompt_tokens for usage in usages), sum(usage.completion_tokens for usage in usages)
            sums = {"prompt": prompt, "completion": completion, "total": prompt + completion}
            found.update((f"x-vsr-looper-{name}-tokens", str(tokens)) for name, tokens in sums.items())
        receipt = orjson.dumps({"version": 1, "complete": complete, "calls": [_told(call) for call in self.calls]}).decode("ascii", "replace")
        if len(receipt) <= _MOST_BYTES:
            found["x-vsr-model-usage"] = receipt
        return found


def _told(call: Call) -> dict[str, Any]:
    usage = call.usage
    shown = usage and {
        "prompt_tokens": usage.prompt_tokens,
        "cached_input_tokens": usage.cached_tokens,
        "cache_write_tokens": usage.cache_write_tokens,
        "completion_tokens": usage.completion_tokens,
    }
    return {"model": call.model, "role": "subject", "stage": "cascade", "status": call.status, "usage": shown}
