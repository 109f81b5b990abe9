"""Versions of a configuration: kept, planned, changed by compare-and-swap, brought back."""

from __future__ import annotations

import asyncio
import os
import stat
from collections.abc import Coroutine
from pathlib import Path
from typing import Any, TypeVar

import pytest

from headway.errors import ConfigError, HeadwayError, NotFoundError
from headway.router.config.diagnostics import ConfigRejected
from headway.router.config.history.active import ActiveConfig, RestartRequiredError
from headway.router.config.history.changes import changes, restart_required
from headway.router.config.history.merge import merged_text
from headway.router.config.history.plan import plan
from headway.router.config.history.versions import KEPT, StaleError, VersionStore, etag_of
from tests.router.config.documents import BASE, document_of

OTHER = BASE.replace("priority: 10", "priority: 20")


_T = TypeVar("_T")


def now(work: Coroutine[Any, Any, _T]) -> _T:
    return asyncio.run(work)


class Router:
    """What serves; a text with `broken` in it cannot."""

    def __init__(self) -> None:
        self.served: list[str] = []

    async def activate(self, text: str) -> None:
        if "broken" in text:
            raise HeadwayError("the model does not load", reason="model_failed")
        self.served.append(text)


@pytest.fixture
def router() -> Router:
    return Router()


@pytest.fixture
def active(tmp_path: Path, router: Router) -> ActiveConfig:
    file = tmp_path / "config.yaml"
    file.write_text(BASE)
    file.chmod(0o640)
    config = ActiveConfig(file, VersionStore(tmp_path / "state" / "versions"), {}, router.activate)
    config.note(BASE)
    return config


def test_ten_versions_are_kept_and_numbers_never_come_twice(tmp_path: Path) -> None:
    store = VersionStore(tmp_path)
    for number in range(KEPT + 5):
        store.record(f"text {number}", "api")
    assert [each.number for each in store.versions()] == list(range(KEPT + 5, 5, -1))
    assert store.record("again", "api").number == KEPT + 6
    with pytest.raises(NotFoundError) as caught:
        store.get(3)
    assert caught.value.reason == "config_version_unknown"
    reopened = VersionStore(tmp_path)
    assert reopened.latest() == store.latest()


def test_the_same_text_again_is_no_new_version(tmp_path: Path) -> None:
    store = VersionStore(tmp_path)
    assert store.record("a", "file").number == store.record("a", "api").number == 1
    assert store.record("a", "rollback", restored=1).number == 2


def test_versions_are_private_and_damaged_files_are_left_out(tmp_path: Path) -> None:
    store = VersionStore(tmp_path / "v")
    store.record("api_key: secret", "file")
    assert stat.S_IMODE(os.stat(tmp_path / "v").st_mode) == 0o700
    assert [stat.S_IMODE(path.stat().st_mode) for path in (tmp_path / "v").iterdir()] == [0o600]
    (tmp_path / "v" / "000002.json").write_text("{")
    assert [each.number for each in store.versions()] == [1]
    assert store.record("next", "api").number == 3


def test_apply(active: ActiveConfig, router: Router) -> None:
    changed = now(active.apply(OTHER, "replace", active.etag))
    assert (changed.version.number, changed.version.origin, changed.version.etag) == (2, "api", etag_of(OTHER))
    assert router.served == [OTHER]
    assert active.text == OTHER
    assert [(each.kind, each.path) for each in changed.plan.changes] == [("changed", "routing.decisions[0].priority")]


def test_a_stale_change_is_refused(active: ActiveConfig, router: Router) -> None:
    read = active.etag
    now(active.apply(OTHER, "replace", read))
    with pytest.raises(StaleError) as caught:
        now(active.apply(BASE, "replace", read))
    assert caught.value.reason == "config_stale"
    assert active.text == OTHER
    assert len(router.served) == 1


def test_of_two_writers_one_wins(active: ActiveConfig) -> None:
    read = active.etag
    third = BASE.replace("priority: 10", "priority: 30")

    async def both() -> list[object]:
        return list(await asyncio.gather(active.apply(OTHER, "replace", read), active.apply(third, "replace", read), return_exceptions=True))

    outcomes = now(both())
    assert sorted(type(each).__name__ for each in outcomes) == ["Changed", "StaleError"]
    assert active.text in (OTHER, third)


@pytest.mark.parametrize(
    ("text", "error"),
    [
        (BASE.replace("model: large", "model: larg"), ConfigRejected),
        (BASE + "# broken\n", HeadwayError),
        (BASE.replace("8899", "8898"), RestartRequiredError),
        ("- 1", ConfigRejected),
    ],
)
def test_what_cannot_serve_leaves_no_trace(active: ActiveConfig, text: str, error: type[Exception]) -> None:
    with pytest.raises(error):
        now(active.apply(text, "replace", active.etag))
    assert active.text == BASE
    assert [each.number for each in active.versions.versions()] == [1]


def test_a_file_that_cannot_be_written_is_told_before_anything_changes(active: ActiveConfig, router: Router, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "access", lambda *_: False)
    with pytest.raises(ConfigError) as caught:
        now(active.apply(OTHER, "replace", active.etag))
    assert caught.value.reason == "config_unwritable"
    assert router.served == []


def test_the_file_keeps_its_mode_and_a_link_stays_a_link(active: ActiveConfig, tmp_path: Path, router: Router) -> None:
    link = tmp_path / "link.yaml"
    link.symlink_to(tmp_path / "config.yaml")
    config = ActiveConfig(link, active.versions, {}, router.activate)
    now(config.apply(OTHER, "replace", "*"))
    assert link.is_symlink()
    assert stat.S_IMODE((tmp_path / "config.yaml").stat().st_mode) == 0o640
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []


def test_rollback_is_a_new_version(active: ActiveConfig, router: Router) -> None:
    now(active.apply(OTHER, "replace", active.etag))
    changed = now(active.rollback(1, active.etag))
    assert (changed.version.number, changed.version.restored, changed.version.origin) == (3, 1, "rollback")
    assert active.text == BASE
    assert router.served == [OTHER, BASE]
    with pytest.raises(StaleError):
        now(active.rollback(2, '"old"'))
    with pytest.raises(NotFoundError):
        now(active.rollback(99, active.etag))


def test_merging_keeps_comments_and_follows_rfc_7396() -> None:
    current = "# top\nversion: v0.3 # pinned\nproviders:\n  defaults:\n    model: small # fast\n    reasoning_effort: low\nlisteners:\n  - name: a\n    port: 1 # x\n"
    patch = "providers:\n  defaults:\n    model: large\n    reasoning_effort: null\nrouting:\n  strategy: confidence\n"
    assert merged_text(current, patch) == (
        "# top\nversion: v0.3 # pinned\nproviders:\n  defaults:\n    model: large # fast\n"
        "listeners:\n  - name: a\n    port: 1 # x\nrouting:\n  strategy: confidence\n"
    )


def test_merging_keeps_nulls_that_mean_something() -> None:
    patch = "global: {model_catalog: {deployments: {primary: null}, signal_timeout_ms: null}}"
    merged = merged_text("version: v0.3\nglobal:\n  model_catalog:\n    signal_timeout_ms: 5\n", patch)
    assert document_of(merged).global_.model_catalog.deployments == {"primary": None}  # type: ignore[union-attr]
    assert "signal_timeout_ms" not in merged
    beside = "version: v0.3\nglobal: {model_catalog: {deployments: {a: {provider: model_runtime, artifact: /a}}}}\n"
    both = document_of(merged_text(beside, "global: {model_catalog: {deployments: {primary: null}}}")).global_.model_catalog.deployments  # type: ignore[union-attr]
    assert both is not None
    assert (set(both), both["primary"]) == ({"a", "primary"}, None)
    assert document_of(merged_text("version: v0.3\n", "global: {model_catalog: {deployments: null}}")).global_.model_catalog.deployments is None  # type: ignore[union-attr]


@pytest.mark.parametrize("patch", ["- 1", "a: [", "5"])
def test_a_patch_that_is_none(patch: str) -> None:
    with pytest.raises(ConfigError):
        merged_text(BASE, patch)


def test_a_plan_shows_no_secrets_unless_asked() -> None:
    text = BASE.replace('{endpoint: "127.0.0.1:8000"}', '{endpoint: "127.0.0.1:8000", api_key: sk-secret}')
    planned = plan(BASE, text, "replace", {})
    assert planned.valid
    assert planned.changed
    assert "sk-secret" not in str(planned.as_json())
    assert "api_key" in str(planned.as_json()["diff"])
    assert "sk-secret" in str(planned.as_json(secrets=True)["diff"])
    assert planned.as_json()["current_etag"] == etag_of(BASE)


def test_a_plan_of_a_wrong_text() -> None:
    planned = plan(BASE, BASE.replace("port: 8899", "port: x"), "replace", {})
    assert not planned.valid
    assert planned.changes == ()
    assert [each["reason"] for each in planned.as_json()["diagnostics"]] == ["value_invalid"]


def test_a_plan_of_the_same_text_changes_nothing() -> None:
    planned = plan(BASE, BASE, "replace", {})
    assert (planned.changed, planned.changes, planned.restart) == (False, (), ())


def test_which_changes_need_a_new_start() -> None:
    def why(old: str, new: str) -> list[str]:
        return restart_required(document_of(BASE.replace("port: 8899", f"port: 8899{old}")), document_of(BASE.replace("port: 8899", f"port: 8899{new}")))

    assert why("", ", api_keys: [a], models: [small]") == []
    assert why("", ", identity: {trust_headers: false}") == []
    assert why("", ", address: 0.0.0.0") == ['address of listener "public" changes']
    assert why("", ", timeout: 10s, tls: {cert_file: c, key_file: k}") == ['timeout of listener "public" changes', 'tls of listener "public" changes']
    assert why("}\n  - {name: b, port: 1", "}\n  - {name: c, port: 1") == ['listener "b" is removed', 'listener "c" is added']


def test_changes_are_named_by_their_places() -> None:
    after = BASE.replace("use_reasoning: true", "use_reasoning: true, weight: 2.0").replace("    context:\n      - {name: long, min_tokens: 2K}\n", "")
    assert {(each.kind, each.path) for each in changes(document_of(BASE), document_of(after))} == {
        ("added", "routing.decisions[0].modelRefs[1].weight"),
        ("removed", "routing.signals.context"),
    }
