"""Host and port in the messages of callers."""

from __future__ import annotations

import pytest

from headway.doctor.rules.network.no_connection import target_of


@pytest.mark.parametrize(
    ("message", "target"),
    [
        (
            "curl: (7) Failed to connect to 10.1.4.9 port 8000 after 1 ms: Couldn't connect to server",
            ("10.1.4.9", 8000),
        ),
        ("HTTPConnectionPool(host='llm', port=8100): Max retries exceeded", ("llm", 8100)),
        (
            'Get "http://10.42.1.7:8000/health": dial tcp 10.42.1.7:8000: connect: connection refused',
            ("10.42.1.7", 8000),
        ),
        ("Error: connect ECONNREFUSED ::1:8000", ("::1", 8000)),
        ("aiohttp: Cannot connect to host vllm:9000 ssl:default [Connect call failed]", ("vllm", 9000)),
        ("httpx.ConnectError: [Errno 111] Connection refused", None),
    ],
)
def test_target(message: str, target: tuple[str, int] | None) -> None:
    assert target_of(message) == target
