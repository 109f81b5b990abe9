from __future__ import annotations

from collections.abc import Callable

import pytest

from headway.capacity.quantity import parse_bandwidth, parse_bytes, parse_count, parse_flops
from headway.errors import ConfigError


@pytest.mark.parametrize(
    ("parse", "text", "value"),
    [
        (parse_count, "70B", 70_000_000_000), (parse_count, "135m", 135_000_000), (parse_count, "1.5 b", 1_500_000_000), (parse_count, "7e9", 7_000_000_000),
        (parse_count, "1_000_000", 1_000_000), (parse_bytes, "24GiB", 24 << 30), (parse_bytes, "80GB", 80_000_000_000), (parse_bytes, "24", 24 << 30),
        (parse_bandwidth, "3.35TB/s", 3.35e12), (parse_bandwidth, "936 GB/s", 936e9), (parse_bandwidth, "42", 42e9), (parse_bandwidth, "42G", 42e9),
        (parse_flops, "989TFLOP/s", 989e12), (parse_flops, "0.87", 0.87e12), (parse_flops, "450GFLOPS", 450e9), (parse_flops, "1.5T", 1.5e12),
    ],
)  # fmt: skip
def test_what_people_write(parse: Callable[[str, str], float], text: str, value: float) -> None:
    assert parse(text, "x") == pytest.approx(value, rel=1e-12)


@pytest.mark.parametrize("parse", [parse_count, parse_bytes, parse_bandwidth, parse_flops])
@pytest.mark.parametrize("text", ["", "much", "-1", "0", "1e99", "70BB", "nan", "1 2", "9" * 400])
def test_anything_else_names_the_option(parse: Callable[[str, str], float], text: str) -> None:
    with pytest.raises(ConfigError, match="--some-flag: expected") as caught:
        parse(text, "some_flag")
    assert caught.value.param == "some_flag"
    assert len(caught.value.message) < 250
