"""Lines of OpenAI's batch files: a request on each line of the input, its answer on the same line of the output."""

from __future__ import annotations

import uuid
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Any, BinaryIO

import orjson

from headway.errors import RequestError
from headway.wire.errors import error_body, shape_of
from headway.wire.limits import BodyLimits
from headway.wire.parse import parse_object

_ENVELOPE_BYTES = 64 * 1024  # of a line, around the body
_SHOWN = 200


@dataclass(frozen=True, slots=True)
class BatchRequest:
    custom_id: str
    url: str
    body: dict[str, Any]


def raw_lines(file: BinaryIO, limits: BodyLimits) -> Iterator[bytes]:
    """The lines with something on them. Of one that is too long comes a piece that is too long as well: never all of it is in memory."""
    most = limits.max_bytes + _ENVELOPE_BYTES
    while line := file.readline(most + 1):
        if len(line) > most:
            while (rest := file.readline(most)) and not rest.endswith(b"\n"):
                pass
        if line.strip():
            yield line


def batch_request(line: bytes, limits: BodyLimits, urls: Collection[str]) -> BatchRequest:
    """Raises RequestError, also for what a batch cannot hold: other methods and addresses, and streams."""
    if len(line) > limits.max_bytes + _ENVELOPE_BYTES:
        raise RequestError(f"The line is longer than {limits.max_bytes} bytes", reason="body_too_large", fix="Send less, or raise --max-request-bytes.")
    fields = parse_object(line, BodyLimits(len(line), limits.max_depth + 1))
    for name, kind in (("custom_id", str), ("method", str), ("url", str), ("body", dict)):
        if not isinstance(fields.get(name), kind):
            raise RequestError(f"{name} must be {'an object' if kind is dict else 'a text'}", param=name, reason="body_invalid")
    if fields["method"].upper() != "POST":
        raise RequestError(f"method must be POST, got {fields['method'][:_SHOWN]!r}", param="method")
    if fields["url"] not in urls:
        raise RequestError(f"url is {fields['url'][:_SHOWN]!r}, a batch can ask {', '.join(sorted(urls))}", param="url")
    if fields["body"].get("stream"):
        raise RequestError("stream cannot be given in a batch", param="stream", fix="Leave it out.")
    return BatchRequest(fields["custom_id"], fields["url"], fields["body"])


def custom_id_of(line: bytes) -> str | None:
    """Of a line that is refused, if it tells one."""
    try:
        fields = orjson.loads(line)
    except orjson.JSONDecodeError:
        return None
    found = fields.get("custom_id") if isinstance(fields, dict) else None
    return found if isinstance(found, str) else None


def answer_line(custom_id: str | None, status: int, body: bytes) -> bytes:
    """`body` is JSON. That of a refusal stands in `error`, as in vLLM."""
    good = status == 200
    error = None if good else orjson.loads(body).get("error")
    response = {"status_code": status, "request_id": f"vllm-batch-{uuid.uuid4().hex}", "body": orjson.Fragment(body) if good else None}
    return orjson.dumps({"id": f"vllm-{uuid.uuid4().hex}", "custom_id": custom_id, "response": response, "error": error}) + b"\n"


def refusal_line(custom_id: str | None, error: BaseException) -> bytes:
    return answer_line(custom_id, shape_of(error).status, orjson.dumps(error_body(error)))
