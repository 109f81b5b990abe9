"""Compressed bodies: what is expanded, what is refused, and how much memory that takes."""

from __future__ import annotations

import gzip
import tracemalloc
import zlib

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from headway.errors import RequestError
from headway.http.compression import codings_of, decoded
from headway.wire.limits import BodyLimits

LIMITS = BodyLimits(1_000_000)
PACK = {"zstd": zstandard.ZstdCompressor().compress, "gzip": gzip.compress, "x-gzip": gzip.compress, "deflate": zlib.compress}


def raw_deflate(data: bytes) -> bytes:
    packer = zlib.compressobj(wbits=-15)
    return packer.compress(data) + packer.flush()


@given(st.binary(max_size=3000), st.lists(st.sampled_from([*PACK]), max_size=3))
def test_what_was_packed_comes_out(data: bytes, codings: list[str]) -> None:
    packed = data
    for coding in codings:
        packed = PACK[coding](packed)
    assert decoded(packed, codings_of(", ".join(codings)), LIMITS) == data


def test_variants_that_clients_send() -> None:
    assert decoded(raw_deflate(b"bare stream"), ["deflate"], LIMITS) == b"bare stream"
    assert decoded(gzip.compress(b"two ") + gzip.compress(b"members"), ["gzip"], LIMITS) == b"two members"
    assert decoded(PACK["zstd"](b"two ") + PACK["zstd"](b"frames"), ["zstd"], LIMITS) == b"two frames"
    assert codings_of(" GZIP , identity,") == ["gzip"]


@pytest.mark.parametrize("coding", ["zstd", "gzip", "deflate"])
def test_a_bomb_takes_no_more_memory_than_the_limit(coding: str) -> None:
    bomb = PACK[coding](bytes(100_000_000))
    tracemalloc.start()
    try:
        with pytest.raises(RequestError) as found:
            decoded(bomb, [coding], LIMITS)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert found.value.reason == "body_too_large"
    assert peak < 5 * LIMITS.max_bytes + (8 << 20)


@pytest.mark.parametrize("coding", ["zstd", "gzip", "deflate"])
def test_many_members_are_refused_since_each_copies_the_rest(coding: str) -> None:
    assert decoded(PACK[coding](b"a") * 64, [coding], LIMITS) == b"a" * 64
    with pytest.raises(RequestError, match="more than 64 members") as found:
        decoded(PACK[coding](b"a") * 65, [coding], LIMITS)
    assert found.value.reason == "body_invalid"


@pytest.mark.parametrize("coding", ["zstd", "gzip", "deflate"])
def test_the_limit_is_met_exactly(coding: str) -> None:
    assert len(decoded(PACK[coding](bytes(LIMITS.max_bytes)), [coding], LIMITS)) == LIMITS.max_bytes
    with pytest.raises(RequestError):
        decoded(PACK[coding](bytes(LIMITS.max_bytes + 1)), [coding], LIMITS)


@pytest.mark.parametrize("coding", ["zstd", "gzip", "deflate"])
def test_damaged_and_cut_data(coding: str) -> None:
    packed = PACK[coding](b"something that is long enough to be cut" * 20)
    for data in (packed[:-3], packed[: len(packed) // 2], b"plain", b"\xff\xff\xff\xff" + packed[4:]):
        with pytest.raises(RequestError) as found:
            decoded(data, [coding], LIMITS)
        assert found.value.reason == "body_invalid"


@pytest.mark.parametrize("header", ["br", "gzip, br", "compress", "gzip, gzip, gzip, gzip"])
def test_codings_that_are_not_known(header: str) -> None:
    with pytest.raises(RequestError) as found:
        codings_of(header)
    assert found.value.reason == "media_type_unsupported"
