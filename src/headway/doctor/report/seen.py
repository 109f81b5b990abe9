"""What a look at a server brought, in one line: so that "nothing wrong" says what was looked at."""

from __future__ import annotations

from typing import Final

from headway.doctor.examine import Examined
from headway.doctor.proof import measures
from headway.doctor.words import Words

# measure -> name, unit, factor to it, digits
_SHOWN: Final = {
    "ttft_s": (Words("first token", "首 token"), " ms", 1e3, 0),
    "inter_token_ms": (Words("between tokens", "token 间隔"), " ms", 1.0, 1),
    "running": (Words("running", "运行"), "", 1.0, 1),
    "waiting": (Words("waiting", "等待"), "", 1.0, 1),
    "kv_cache_usage": (Words("KV cache", "KV 缓存"), " %", 100.0, 1),
    "generation_tokens_per_s": (Words("generated", "生成"), " tokens/s", 1.0, 1),
}


def seen_line(examined: Examined) -> Words | None:
    """None when no server was asked."""
    context = examined.case.context
    if not context.has("endpoint"):
        return None
    status = context.text("endpoint.health.status")
    parts = [Words(f"health {status or 'no answer'}", f"健康检查 {status or '无应答'}")]
    if models := context.items("endpoint.models"):
        parts.append(Words(f"model {models[0]}", f"模型 {models[0]}"))
    found = measures(examined.case)
    for name, (title, unit, factor, digits) in _SHOWN.items():
        if name in found:
            text = f"{found[name] * factor:.{digits}f}{unit}"
            parts.append(Words(f"{title.en} {text}", f"{title.zh} {text}"))
    return Words(" · ".join(part.en for part in parts), " · ".join(part.zh for part in parts))
