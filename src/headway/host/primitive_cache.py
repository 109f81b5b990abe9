"""How many compiled matrix products oneDNN keeps.

It compiles one for each shape, and each number of tokens in a step is another shape: some 0.4 MiB and 4 ms apiece. torch
and oneDNN each keep the last 1024, so that a server's memory grows by 470 MiB over its first hours (measured: bf16, four
weight shapes of SmolLM2-135M, 320 numbers of tokens; 28 MiB with both bounded to 64).
"""

from __future__ import annotations

from collections.abc import MutableMapping

CAPACITY = 256  # about fifty numbers of tokens
_VARIABLES = ("LRU_CACHE_CAPACITY", "ONEDNN_PRIMITIVE_CACHE_CAPACITY")  # torch's (ideep), oneDNN's
_OLD_NAME = "DNNL_PRIMITIVE_CACHE_CAPACITY"


def bound_primitive_caches(environment: MutableMapping[str, str]) -> None:
    """Set what the user has not set. Has an effect only before torch is imported."""
    for name in _VARIABLES:
        if name not in environment and not (name.startswith("ONEDNN") and _OLD_NAME in environment):
            environment[name] = str(CAPACITY)
