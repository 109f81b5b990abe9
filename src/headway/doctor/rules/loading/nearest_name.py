"""The name that was probably meant: nearest of what is on disk, or a known owner that is nearly spelt so."""

from __future__ import annotations

import re
from collections.abc import Iterable
from difflib import get_close_matches
from typing import Final

# owners of many models on the hub, as they spell themselves
_OWNERS: Final = (
    "01-ai", "AIDC-AI", "BAAI", "CohereLabs", "EleutherAI", "HuggingFaceTB", "LGAI-EXAONE", "MiniMaxAI", "NousResearch", "OpenGVLab",
    "Qwen", "THUDM", "TinyLlama", "TheBloke", "XiaomiMiMo", "allenai", "baichuan-inc", "bigcode", "bigscience", "databricks", "deepseek-ai",
    "facebook", "google", "ibm-granite", "intfloat", "internlm", "meta-llama", "microsoft", "mistralai", "moonshotai", "nvidia", "openai",
    "openai-community", "openbmb", "sentence-transformers", "stabilityai", "tiiuae", "unsloth", "upstage", "vllm-sr", "zai-org",
)  # fmt: skip
_NEAR: Final = 0.8
_NEAR_OF_OWNER: Final = 0.7


def nearest_known(name: str, known: Iterable[str]) -> str:
    """The known id that is most like `name`, upper and lower case disregarded; "" when none is near. The name itself is
    no answer."""
    by_small = {other.lower(): other for other in known if other != name}
    found = get_close_matches(name.lower(), by_small, 1, _NEAR)
    if not found:
        owner = name.lower().partition("/")[0] + "/"
        same = [other for other in by_small if other.startswith(owner) and same_size(other, name)]
        found = get_close_matches(name.lower(), same, 1, _NEAR_OF_OWNER)
    return by_small[found[0]] if found else ""


def same_size(one: str, other: str) -> bool:
    """Whether two names have the same digits: versions and sizes; else they are siblings, not spellings."""
    return re.sub(r"\D", "", one) == re.sub(r"\D", "", other)


def with_known_owner(name: str) -> str:
    """`meta-lama/X` -> `meta-llama/X`; "" when the owner is known as it is, or is near none."""
    owner, _, rest = name.partition("/")
    if not rest or owner in _OWNERS:
        return ""
    right = nearest_known(owner, _OWNERS)
    return f"{right}/{rest}" if right else ""
