"""Damaged configurations: the validator never raises, tells places that are there, and what it takes can be written and read again."""

from __future__ import annotations

import copy
import random
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from headway.errors import ConfigError
from headway.router.config.load import Source, examine
from headway.router.config.migration.migrate import STEPS, migrate
from headway.router.config.migration.tree import Tree
from headway.router.config.normal_form import escaped, normal_form, to_yaml
from tests.router.config.defects import DEFECTS
from tests.router.config.documents import base
from tests.router.config.generated_configs import generated
from tests.router.config.migration.test_layouts import CLI_V01, FLAT, V03_EARLY

JUNK: list[Any] = [
    None, 0, -1, 1.5, 10**30, True, "", " ", "x", "small", "${X}", "primary", [], [None], [[]], [{}], {}, {"": 1}, {"name": None}, {"name": "x"},
    {"type": "keyword"}, {"a": {"b": [1]}}, "127.0.0.1:1", "OR", "5s", float("1e308"),
]  # fmt: skip


def damaged(data: Any, rng: random.Random, times: int) -> Any:
    """Some values replaced, removed, repeated or misnamed."""
    data = copy.deepcopy(data)
    for _ in range(times):
        places = list(_places(data))
        holder, key = rng.choice(places)
        kind = rng.randrange(4)
        if kind == 0:
            holder[key] = copy.deepcopy(rng.choice(JUNK))
        elif kind == 1:
            del holder[key]
        elif kind == 2 and isinstance(holder, list):
            holder.append(copy.deepcopy(holder[key]))
        elif isinstance(holder, dict):
            holder[f"{key}{rng.choice('sx_')}"] = holder.pop(key)
        if not data:
            return data
    return data


def _places(value: Any) -> Any:
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, below in list(items):
        yield value, key
        yield from _places(below)


@settings(max_examples=50, deadline=None)
@given(st.integers(0, 10**9), st.integers(1, 6), st.booleans())
def test_the_validator_never_raises(seed: int, times: int, small: bool) -> None:
    rng = random.Random(seed)
    whole = base() if small else yaml.safe_load(generated(len(DEFECTS) + seed % 1000).text)
    text = yaml.safe_dump(damaged(whole, rng, times), sort_keys=False)
    found = examine(Source(text), {})
    lines = text.count("\n") + 1
    assert all(each.line is None or 1 <= each.line <= lines for each in found.diagnostics)
    assert found.valid or any(each.severity == "error" for each in found.diagnostics)
    if found.document is not None:
        again = examine(Source(to_yaml(escaped(normal_form(found.document)))), {})
        assert again.document == found.document, [*map(str, again.diagnostics)]


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10**9), st.integers(1, 6), st.sampled_from([FLAT, CLI_V01, V03_EARLY]))
def test_migrating_never_raises_and_is_idempotent(seed: int, times: int, layout: str) -> None:
    rng = random.Random(seed)
    text = yaml.safe_dump(damaged(yaml.safe_load(layout), rng, times), sort_keys=False)
    if not isinstance(yaml.safe_load(text), dict) or not yaml.safe_load(text):
        return
    try:
        once = migrate(Source(text), {})
    except ConfigError:  # a number beyond 64 bits
        return
    again = migrate(Source(once.text), {})
    assert again.text == once.text, again.done


@pytest.mark.parametrize("junk", JUNK, ids=repr)
def test_any_section_may_hold_anything(junk: Any) -> None:
    for section in ("listeners", "providers", "routing", "entrypoints", "recipes", "global"):
        data = {**base(), section: junk}
        examine(Source(yaml.safe_dump(data)), {})
        for step in STEPS:
            step(Tree(copy.deepcopy(data)))
