"""The caches of compiled matrix products are bounded before torch is there."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from headway.host.primitive_cache import bound_primitive_caches

# 400 products of different sizes; prints the MiB that the process gained.
CODE = """
import os
import headway
import psutil, torch
torch.set_num_threads(1)
from headway.kernels.torch_linear import pack_linear
weight = pack_linear(torch.zeros(64, 64), None)
weight(torch.zeros(1, 64))
before = psutil.Process().memory_info().rss
for rows in range(2, 402):
    weight(torch.zeros(rows, 64))
print((psutil.Process().memory_info().rss - before) >> 20)
"""


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({}, {"LRU_CACHE_CAPACITY": "256", "ONEDNN_PRIMITIVE_CACHE_CAPACITY": "256"}),
        ({"LRU_CACHE_CAPACITY": "9"}, {"LRU_CACHE_CAPACITY": "9", "ONEDNN_PRIMITIVE_CACHE_CAPACITY": "256"}),
        ({"DNNL_PRIMITIVE_CACHE_CAPACITY": "9"}, {"DNNL_PRIMITIVE_CACHE_CAPACITY": "9", "LRU_CACHE_CAPACITY": "256"}),
    ],
)
def test_what_the_user_set_stays(given: dict[str, str], expected: dict[str, str]) -> None:
    bound_primitive_caches(given)
    assert given == expected


def gained(**variables: str) -> int:
    own = {name: value for name, value in os.environ.items() if "CACHE_CAPACITY" not in name}
    done = subprocess.run([sys.executable, "-c", CODE], env={**own, **variables}, capture_output=True, text=True, check=True)
    return int(done.stdout)


def test_memory_stays_bounded() -> None:
    unbounded = gained(LRU_CACHE_CAPACITY="1024", ONEDNN_PRIMITIVE_CACHE_CAPACITY="1024")
    assert gained() < 0.8 * unbounded
