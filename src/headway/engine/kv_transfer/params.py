"""kv_transfer_params of a request, as vLLM's NixlConnector and its proxies write them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from headway.errors import RequestError

PARAM: Final = "kv_transfer_params"
_MOST_TEXT: Final = 255


@dataclass(frozen=True, slots=True)
class RemotePrefill:
    """Where the blocks of the prompt lie: which engine, at which address, under which name."""

    host: str
    port: int
    engine_id: str
    lease: str


@dataclass(frozen=True, slots=True)
class TransferParams:
    """`keeps`: the blocks of this prompt are to be kept for another engine (do_remote_decode). `source`: they are at another engine
    (do_remote_prefill)."""

    keeps: bool
    source: RemotePrefill | None


def transfer_params(given: Mapping[str, Any] | None) -> TransferParams | None:
    """None where nothing is asked for. Raises RequestError. What other connectors add (remote_block_ids, tp_size) is not needed: blocks
    are named by the hashes of their tokens."""
    if given is None:
        return None
    keeps, pulls = _truth(given, "do_remote_decode"), _truth(given, "do_remote_prefill")
    if keeps and pulls:
        raise _wrong("do_remote_decode and do_remote_prefill exclude each other")
    if not keeps and not pulls:
        return None
    return TransferParams(keeps, _source(given) if pulls else None)


def _source(given: Mapping[str, Any]) -> RemotePrefill:
    port = given.get("remote_port")
    if isinstance(port, str) and port.isascii() and port.isdecimal() and len(port) <= 5:
        port = int(port)
    if not isinstance(port, int) or isinstance(port, bool) or not 1 <= port <= 65535:
        raise _wrong("remote_port must be a port from 1 to 65535")
    return RemotePrefill(_text(given, "remote_host"), port, _text(given, "remote_engine_id"), _text(given, "remote_request_id"))


def _truth(given: Mapping[str, Any], name: str) -> bool:
    value = given.get(name)
    if value is not None and not isinstance(value, bool):
        raise _wrong(f"{name} must be true or false")
    return bool(value)


def _text(given: Mapping[str, Any], name: str) -> str:
    value = given.get(name)
    if not isinstance(value, str) or not 0 < len(value) <= _MOST_TEXT:
        raise _wrong(f"{name} must be a text of 1 to {_MOST_TEXT} characters, as the prefill's answer has it")
    return value


def _wrong(message: str) -> RequestError:
    return RequestError(f"{PARAM}: {message}", param=PARAM)
