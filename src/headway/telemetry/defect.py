"""describe_defect: where something broke, for the log, without the values that it broke on (they may be a user's text)."""

from __future__ import annotations

import traceback


def describe_defect(error: BaseException) -> str:
    """Kind of the exception and the lines that it came through, innermost last. Not its message."""
    frames = traceback.extract_tb(error.__traceback__)
    places = "".join(f"\n  {frame.filename}:{frame.lineno} in {frame.name}" for frame in frames)
    return f"{type(error).__name__}{places}"
