"""How Go programs write durations: `10m0s`, `1h0m0s`, `1.5s`, `250ms`."""

from __future__ import annotations


def written(seconds: float) -> str:
    if seconds < 1:
        return f"{seconds * 1000:g}ms"
    whole = int(seconds)
    hours, minutes, rest = whole // 3600, whole % 3600 // 60, seconds - whole // 60 * 60
    if hours:
        return f"{hours}h{minutes}m{rest:g}s"
    return f"{minutes}m{rest:g}s" if minutes else f"{rest:g}s"
