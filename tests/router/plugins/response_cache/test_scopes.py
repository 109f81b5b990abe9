"""Answers never cross from one identity to another, on every backend and after a restart."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.router.plugins.response_cache.scope import scope_of
from headway.router.request.identity import Identity
from tests.router.plugins.response_cache.backends import BACKENDS, LASTING, cache, settings_of
from tests.router.plugins.rig import ALICE, BOB, Rig, chat, run

LONG = " ".join(f"word{number % 17}" for number in range(300)) + " what is my balance"
NOBODY = Identity(peer="127.0.0.1")
KEYED = Identity(key="app-1")
MODES = ["semantic", "exact", "exact_then_semantic"]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("backend", BACKENDS)
def test_only_the_same_user_gets_an_answer_again(tmp_path: Path, backend: str, mode: str) -> None:
    async def work() -> None:
        with settings_of(backend) as settings:
            rig = Rig(tmp_path, cache(mode=mode), settings=settings)
            assert (await rig.ask(LONG, ALICE)).path == "upstream"
            assert (await rig.ask(LONG, ALICE)).path == "cache"
            assert (await rig.ask(LONG, BOB)).path == "upstream"
            assert (await rig.ask(LONG, Identity(user="alice", tenant="other"))).path == "upstream"
            assert (await rig.ask(LONG, KEYED)).path == "upstream"
            assert (await rig.ask(LONG, KEYED)).path == "cache"
            for claims in ({"user": "alice"}, {"metadata": {"user": "alice"}}):
                for _ in range(2):
                    told = await rig.ask({**chat(LONG), **claims}, NOBODY, {"x-authz-user-id": "alice"})
                    assert (told.path, told.context.cache_status) == ("upstream", "bypass")
            await rig.services.close()

    run(work)


@pytest.mark.parametrize("backend", LASTING)
def test_scopes_hold_after_a_restart(tmp_path: Path, backend: str) -> None:
    async def work() -> None:
        with settings_of(backend) as settings:
            first = Rig(tmp_path, cache(), settings=settings)
            await first.ask(LONG, ALICE)
            await first.services.close()
            second = Rig(tmp_path, cache(), settings=settings)
            assert (await second.ask(LONG, BOB)).path == "upstream"
            assert (await second.ask(LONG, NOBODY)).path == "upstream"
            assert (await second.ask(LONG, ALICE)).path == "cache"
            await second.services.close()

    run(work)


def test_memory_ends_with_the_process(tmp_path: Path) -> None:
    async def work() -> None:
        await Rig(tmp_path, cache()).ask(LONG)
        assert (await Rig(tmp_path, cache()).ask(LONG)).path == "upstream"

    run(work)


@pytest.mark.parametrize(
    ("scope", "shares", "apart"),
    [
        ("team", Identity(user="x", tenant="acme", team="red"), Identity(user="alice", tenant="acme", team="blue")),
        ("tenant", Identity(user="x", tenant="acme"), Identity(user="alice", tenant="umbrella", team="red")),
    ],
)
def test_wider_scopes(tmp_path: Path, scope: str, shares: Identity, apart: Identity) -> None:
    async def work() -> None:
        rig = Rig(tmp_path, cache(scope=scope))
        await rig.ask("what is our plan", ALICE)
        assert (await rig.ask("what is our plan", shares)).path == "cache"
        assert (await rig.ask("what is our plan", apart)).path == "upstream"
        assert (await rig.ask("what is our plan", Identity(user="alice"))).context.cache_status == "bypass"

    run(work)


def test_the_global_scope_is_for_everybody(tmp_path: Path) -> None:
    async def work() -> None:
        rig = Rig(tmp_path, cache(scope="global"))
        await rig.ask("what is rain", NOBODY)
        assert (await rig.ask("what is rain", BOB)).path == "cache"

    run(work)


names = st.text(min_size=1, max_size=6)
identities = st.builds(
    Identity, key=st.none() | names, user=st.none() | names, team=st.none() | names, tenant=st.none() | names, peer=st.sampled_from(["", "10.0.0.1"])
)


@given(identities, identities, st.sampled_from(["user", "team", "tenant"]))
def test_two_identities_share_a_scope_only_if_all_its_parts_are_equal(one: Identity, other: Identity, scope: str) -> None:
    parts: dict[str, Any] = {
        "user": lambda who: (who.tenant, who.user) if who.user else (who.tenant, who.key, "key") if who.key else None,
        "team": lambda who: (who.tenant, who.team) if who.team else None,
        "tenant": lambda who: who.tenant,
    }
    first, second = parts[scope](one), parts[scope](other)
    assert (scope_of(one, scope) is None) == (first is None)
    if first is not None and second is not None:
        assert (scope_of(one, scope) == scope_of(other, scope)) == (first == second)
