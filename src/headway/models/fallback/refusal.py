"""The error for an architecture that cannot be run."""

from __future__ import annotations

from headway.errors import ArtifactError


def refusal(
    architecture: str, why: str, fix: str | None = None, *, reason: str = "unsupported_architecture"
) -> ArtifactError:
    """`why` completes "cannot be run: "."""
    return ArtifactError(
        f"architecture {architecture!r:.80} cannot be run: {why}", reason=reason, param="architectures",
        fix=fix or "Choose a model of another architecture (docs/models.md).",
    )  # fmt: skip


def first_line(error: Exception) -> str:
    """What an exception of somebody else says, in one line."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[0][:300] if lines else type(error).__name__
