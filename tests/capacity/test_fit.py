from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.capacity.fit import AUTO, CapacityReport, fit
from headway.capacity.kv_budget import KvBudget
from headway.capacity.kv_geometry import KvGeometry
from headway.errors import CapacityError, ConfigError

TINY = KvGeometry(2, 2, 8)  # 64 elements, 128 bytes per token in bf16, 2048 per block of 16


def _fit(nbytes: int = 0, **options: int | bool | None) -> CapacityReport:
    return fit(TINY, KvBudget(nbytes, "test"), weight_bytes=1000, kv_dtype_bytes=2, **options)  # type: ignore[arg-type]


def test_blocks_after_the_null_block() -> None:
    report = _fit(10 * 2048 + 2047, context_length=100)
    assert (report.num_blocks, report.tokens, report.kv_bytes, report.max_model_len) == (9, 144, 20480, 100)
    assert report.max_concurrency == pytest.approx(9 / 7)


def test_equation_shows_numbers_that_multiply() -> None:
    report = _fit(10 * 2048, context_length=100)
    found = re.search(
        r"\((\d+) \+ 1 null\) blocks x (\d+) tokens x (\d+) B \(2 x (\d+) layers x (\d+) KV heads x (\d+) x (\d+) B\)",
        report.equation(),
    )
    assert found is not None
    blocks, size, per_token, layers, heads, dim, dtype = map(int, found.groups())
    assert per_token == 2 * layers * heads * dim * dtype
    assert (blocks + 1) * size * per_token == report.kv_bytes
    assert "\n" not in report.equation()


def test_exactly_fitting_override_of_case_b04() -> None:
    assert _fit(num_blocks_override=8, max_model_len=128, context_length=512).tokens == 128
    with pytest.raises(CapacityError) as caught:
        _fit(num_blocks_override=8, max_model_len=256, context_length=512)
    assert caught.value.reason == "does_not_fit"
    assert "longest sequence that fits has 128 tokens" in caught.value.message
    assert "--max-model-len 128" in caught.value.message
    assert "--num-gpu-blocks-override 16" in caught.value.message
    assert "gpu" not in caught.value.message.lower().replace("--num-gpu-blocks-override", "")


def test_the_advice_of_the_error_works() -> None:
    with pytest.raises(CapacityError) as caught:
        _fit(5 * 2048, context_length=1000)
    advised = int(re.findall(r"--kv-cache-memory-bytes (\d+)", caught.value.message)[0])
    assert _fit(advised, context_length=1000).max_model_len == 1000
    with pytest.raises(CapacityError):
        _fit(advised - 1, context_length=1000)
    length = int(re.findall(r"--max-model-len (\d+)", caught.value.message)[0])
    assert _fit(5 * 2048, max_model_len=length, context_length=1000).max_model_len == length
    with pytest.raises(CapacityError):
        _fit(5 * 2048, max_model_len=length + 1, context_length=1000)


def test_auto_takes_the_longest_that_fits() -> None:
    assert _fit(5 * 2048, max_model_len=AUTO, context_length=1000).max_model_len == 64
    assert _fit(100 * 2048, max_model_len=AUTO, context_length=1000).max_model_len == 1000
    assert _fit(5 * 2048, max_model_len=AUTO).max_model_len == 64


def test_longer_than_the_model_must_be_allowed() -> None:
    with pytest.raises(
        ConfigError, match=r"max_model_len \(101\) is greater than the derived max_model_len \(100"
    ) as caught:
        _fit(100 * 2048, max_model_len=101, context_length=100)
    assert caught.value.reason == "max_model_len_too_long"
    assert _fit(100 * 2048, max_model_len=101, context_length=100, allow_longer_context=True).max_model_len == 101


def test_room_for_no_block_says_what_one_takes() -> None:
    with pytest.raises(CapacityError, match="--kv-cache-memory-bytes 4096") as caught:
        _fit(4095, context_length=10)
    assert "2.00 KiB" in caught.value.message
    assert _fit(4096, context_length=10).num_blocks == 1


@pytest.mark.parametrize(
    "options",
    [
        {"max_model_len": 0, "context_length": 5},
        {"max_model_len": -2, "context_length": 5},
        {},
        {"num_blocks_override": 0},
    ],
)
def test_impossible_wishes(options: dict[str, int]) -> None:
    with pytest.raises(ConfigError):
        _fit(100 * 2048, **options)


@given(blocks=st.integers(2, 200), length=st.integers(1, 4000), block_size=st.sampled_from([1, 8, 16, 32]))
def test_accepted_exactly_when_the_blocks_suffice(blocks: int, length: int, block_size: int) -> None:
    nbytes = blocks * block_size * TINY.bytes_per_token(2)
    try:
        report = _fit(nbytes, block_size=block_size, max_model_len=length, context_length=4000)
    except CapacityError:
        assert length > (blocks - 1) * block_size
    else:
        assert length <= report.tokens
        assert report.kv_bytes <= nbytes
        assert report.max_concurrency >= 1
