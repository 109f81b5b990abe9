"""Chat templates that requests bring along: rendered in a process of their own, so that what they use up ends with them.

The sandbox keeps a template from running code, but not from `'x' | center(3000000000)`: in this process that would take
its memory and hold up everybody.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from typing import Any

from headway.errors import QueueFullError, RequestError

MOST_BYTES = 1 << 30
_AT_ONCE = 2
_room = threading.BoundedSemaphore(_AT_ONCE)


def render_foreign(seconds: float, most_bytes: int = MOST_BYTES, **asked: Any) -> str:
    """`asked` are the keywords of `render_chat_template`, all of JSON types. Takes about 0.2 s, so it is for worker threads.

    Raises RequestError, `chat_template_error`, as that does and for a template that uses up its time or memory;
    QueueFullError when two are being rendered.
    """
    if not _room.acquire(blocking=False):
        raise QueueFullError(f"{_AT_ONCE} chat templates of requests are being rendered, more cannot wait", param="chat_template")
    try:
        done = subprocess.run(
            [sys.executable, "-m", "headway.server.template_process", str(most_bytes)],
            input=json.dumps(asked), capture_output=True, text=True, timeout=seconds, check=False,
            env={"PYTHONPATH": os.pathsep.join(path for path in sys.path if path), "PYTHONIOENCODING": "utf-8"},
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        raise _refused(f"The chat template was not done after {seconds:g} s") from None
    finally:
        _room.release()
    if done.returncode != 0:
        raise _refused(f"The chat template used more memory than it may ({most_bytes >> 20} MiB)")
    answer = json.loads(done.stdout)
    if "error" in answer:
        raise RequestError(answer["error"].pop("message"), **answer["error"])
    return str(answer["text"])


def _refused(message: str) -> RequestError:
    return RequestError(message, reason="chat_template_error", param="chat_template")
