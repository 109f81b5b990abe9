"""`python -m headway.server.template_process BYTES`: render the one chat template that comes on standard input, and end.

In: the keywords of `render_chat_template` as one JSON object. Out: `{"text": ...}` or `{"error": {message, reason, param}}`.
"""

from __future__ import annotations

import json
import resource
import sys

from headway.artifacts.chat_template import render_chat_template
from headway.errors import RequestError


def main(most_bytes: int) -> None:
    resource.setrlimit(resource.RLIMIT_AS, (most_bytes, most_bytes))
    asked = json.load(sys.stdin)
    try:
        answer: dict[str, object] = {"text": render_chat_template(**asked)}
    except RequestError as error:
        answer = {"error": {"message": error.message, "reason": error.reason, "param": error.param}}
    json.dump(answer, sys.stdout)


if __name__ == "__main__":
    main(int(sys.argv[1]))
