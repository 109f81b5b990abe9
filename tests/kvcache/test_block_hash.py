from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from headway.kvcache.block_hash import extend_hashes, root_hash

TOKENS = st.lists(st.integers(0, 2**31), max_size=40)


def hashes(tokens: list[int], salt: str | None = None, size: int = 4) -> list[bytes]:
    out: list[bytes] = []
    extend_hashes(out, root_hash(salt), tokens, size)
    return out


@given(TOKENS, st.integers(0, 40))
def test_growing_gives_the_same_chain_as_hashing_at_once(tokens: list[int], cut: int) -> None:
    grown: list[bytes] = []
    extend_hashes(grown, root_hash(None), tokens[:cut], 4)
    extend_hashes(grown, root_hash(None), tokens, 4)
    assert grown == hashes(tokens)
    assert len(grown) == len(tokens) // 4


@given(TOKENS, TOKENS)
def test_equal_hash_means_equal_prefix(a: list[int], b: list[int]) -> None:
    for i, (x, y) in enumerate(zip(hashes(a), hashes(b), strict=False)):
        assert (x == y) == (a[: 4 * (i + 1)] == b[: 4 * (i + 1)])


def test_the_same_block_after_another_prefix_is_another_block() -> None:
    assert hashes([1, 2, 3, 4, 9, 9, 9, 9])[1] != hashes([1, 2, 3, 5, 9, 9, 9, 9])[1]


def test_salts_separate() -> None:
    tokens = list(range(8))
    assert not set(hashes(tokens, "a")) & set(hashes(tokens, "b"))
    assert not set(hashes(tokens, "a")) & set(hashes(tokens))
    assert hashes(tokens, "a") == hashes(tokens, "a")
