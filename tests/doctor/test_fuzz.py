"""Whatever is given, a report comes: damaged logs, contexts with the wrong types in the right places."""

from __future__ import annotations

import json
import tempfile
from copy import deepcopy
from pathlib import Path
from random import Random

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.doctor.judging import Expectation, Material, fault, fixture, fixture_names, report_on, written_cases

MATERIALS = [fixture(name).material for name in fixture_names()] + [case.material for case in written_cases()]
ODD = st.one_of(
    st.none(),
    st.booleans(),
    st.sampled_from([0, -1, 1e30, float("nan"), float("inf"), "", "x", "-", "8 GiB", "[", [], {}, [None], [[]], [{}], {"a": None}, ["x", 1], "1,2"]),
)


def report(log: bytes, context: bytes | None = None) -> None:
    with tempfile.TemporaryDirectory() as folder:
        for language in ("en", "zh"):
            output = report_on(Material(log, context), Path(folder), language)  # type: ignore[arg-type]
            assert fault(output, Expectation(), log) == "", output[:2000]
            unread = [missing for missing in json.loads(output)["abstained"] if "could not read this case" in missing]
            assert unread == []


def damaged(random: Random) -> bytes:
    log = bytearray(random.choice(MATERIALS).log)
    for _ in range(random.randrange(1, 12)):
        at = random.randrange(len(log) + 1)
        kind = random.randrange(5)
        if kind == 0 and log:
            log[at % len(log)] = random.randrange(256)
        elif kind == 1:
            del log[at : at + random.randrange(200)]
        elif kind == 2:
            log[at:at] = random.choice(MATERIALS).log[:: random.choice((1, 2))][: random.randrange(400)]
        elif kind == 3:
            log[at:at] = bytes(random.randrange(256) for _ in range(20))
        else:
            lines = log.split(b"\n")
            random.shuffle(lines)
            log = bytearray(b"\n".join(lines))
    return bytes(log)


def check_damaged(seeds: range) -> None:
    for seed in seeds:
        random = Random(seed)
        report(damaged(random), random.choice([material.context for material in MATERIALS]))


def test_damaged_logs() -> None:
    check_damaged(range(60))


@pytest.mark.long
@pytest.mark.timeout(900)
def test_many_damaged_logs() -> None:
    check_damaged(range(60, 4000))


@given(st.text())
@settings(max_examples=60, deadline=None)
def test_any_text(text: str) -> None:
    report(text.encode("utf-8", "surrogatepass"))


def paths(tree: object, here: tuple[object, ...] = ()) -> list[tuple[object, ...]]:
    found = [here] if here else []
    members = tree.items() if isinstance(tree, dict) else enumerate(tree) if isinstance(tree, list) else ()
    for name, member in members:
        found += paths(member, (*here, name))
    return found


CONTEXTS = [(material, yaml.safe_load(material.context)) for material in MATERIALS if material.context]


def check_odd(data: st.DataObject) -> None:
    material, tree = data.draw(st.sampled_from(CONTEXTS))
    if not isinstance(tree, dict):
        return
    tree = json.loads(json.dumps(tree, default=str))
    for _ in range(data.draw(st.integers(1, 3))):
        path = data.draw(st.sampled_from(paths(tree)))
        here = tree
        for step in path[:-1]:
            here = here[step]
        here[path[-1]] = deepcopy(data.draw(ODD))  # the next round may change it
    report(material.log, yaml.safe_dump(tree).encode())


@given(st.data())
@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
def test_contexts_with_odd_values(data: st.DataObject) -> None:
    check_odd(data)


@pytest.mark.long
@pytest.mark.timeout(900)
@given(st.data())
@settings(max_examples=1500, deadline=None, suppress_health_check=list(HealthCheck))
def test_many_contexts_with_odd_values(data: st.DataObject) -> None:
    check_odd(data)
