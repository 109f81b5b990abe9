"""Bodies that came compressed, expanded within a limit: a small body must not become a large one unnoticed."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping

import zstandard

from headway.errors import RequestError
from headway.wire.limits import BodyLimits, too_large

_MAX_CODINGS = 3
_MAX_MEMBERS = 64  # gzip members or zstd frames; what follows each is copied, so many small ones would take quadratic time
_ZSTD_WINDOW = 8 * 1024 * 1024  # bytes that a decoder must remember, as RFC 9659 sets it for HTTP
_ZSTD_PIECE = 128  # bytes; a block of 4 bytes may stand for 128 KiB
_GZIP, _ZLIB, _RAW = 31, 15, -15  # wbits of zlib


def codings_of(header: str) -> list[str]:
    """The codings of a `Content-Encoding` header in the order in which they were applied, identity left out.

    Raises RequestError, reason `media_type_unsupported`, for one that is not known here.
    """
    found = [name for name in (part.strip().lower() for part in header.split(",")) if name not in ("", "identity")]
    for name in found:
        if name not in _DECODERS:
            raise RequestError(
                f"The body is encoded as {name[:40]!r}, which is not known here", reason="media_type_unsupported",
                param="content-encoding", fix=f"Known are {', '.join(sorted(_DECODERS))} and identity.",
            )  # fmt: skip
    if len(found) > _MAX_CODINGS:
        raise RequestError(f"The body is encoded {len(found)} times", reason="media_type_unsupported", param="content-encoding")
    return found


def decoded(raw: bytes, codings: list[str], limits: BodyLimits) -> bytes:
    """Raises RequestError: `body_too_large` when it expands beyond the limit, `body_invalid` for damaged data."""
    for name in reversed(codings):
        raw = _DECODERS[name](raw, limits)
    return raw


def _zstd(raw: bytes, limits: BodyLimits) -> bytes:
    """Fed in pieces, since a decoder cannot be told to stop: one piece expands to 4 MiB at most."""
    out = bytearray()
    try:
        for _ in range(_MAX_MEMBERS):  # one frame after the other
            if not raw:
                break
            decoder = zstandard.ZstdDecompressor(max_window_size=_ZSTD_WINDOW).decompressobj()
            for start in range(0, len(raw), _ZSTD_PIECE):
                out += decoder.decompress(raw[start : start + _ZSTD_PIECE])
                if len(out) > limits.max_bytes:
                    raise too_large(limits)
                if decoder.eof:
                    break
            if not decoder.eof:
                raise _damaged("zstd")
            raw = decoder.unused_data + raw[start + _ZSTD_PIECE :]
    except zstandard.ZstdError as error:
        raise _damaged("zstd") from error
    return _all_read(raw, out, "zstd")


def _gzip(raw: bytes, limits: BodyLimits) -> bytes:
    return _inflate(raw, _GZIP, limits, "gzip")


def _deflate(raw: bytes, limits: BodyLimits) -> bytes:
    """RFC 9110 means the zlib format; some clients send the bare stream."""
    is_zlib = len(raw) >= 2 and raw[0] & 15 == 8 and (raw[0] << 8 | raw[1]) % 31 == 0
    return _inflate(raw, _ZLIB if is_zlib else _RAW, limits, "deflate")


def _inflate(raw: bytes, wbits: int, limits: BodyLimits, name: str) -> bytes:
    out = bytearray()
    for _ in range(_MAX_MEMBERS):  # gzip may have several members
        if not raw:
            break
        decoder = zlib.decompressobj(wbits)
        try:
            out += decoder.decompress(raw, limits.max_bytes + 1 - len(out))
        except zlib.error as error:
            raise _damaged(name) from error
        if len(out) > limits.max_bytes:
            raise too_large(limits)
        if not decoder.eof:
            raise _damaged(name)
        raw = decoder.unused_data
    return _all_read(raw, out, name)


def _all_read(rest: bytes, out: bytearray, name: str) -> bytes:
    if rest:
        raise RequestError(f"The {name} body has more than {_MAX_MEMBERS} members", reason="body_invalid", param="content-encoding")
    return bytes(out)


def _damaged(name: str) -> RequestError:
    return RequestError(f"The body is not valid {name}", reason="body_invalid", param="content-encoding")


_DECODERS: Mapping[str, Callable[[bytes, BodyLimits], bytes]] = {
    "zstd": _zstd, "gzip": _gzip, "x-gzip": _gzip, "deflate": _deflate,
}  # fmt: skip
