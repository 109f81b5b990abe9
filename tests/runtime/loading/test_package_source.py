"""Where a model comes from: local paths, short names, built-in names, repositories of the hub."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from headway.artifacts import hub_package as hub_package_module
from headway.errors import ArtifactError
from headway.runtime.loading import package_source
from headway.runtime.loading.builtins import Builtin, builtin_named, builtins
from headway.runtime.loading.load_failure import failure_reason
from headway.runtime.loading.model_entry import ModelEntry
from headway.runtime.loading.package_source import Stores, default_name, obtain, split_reference
from headway.runtime.loading.verification import Digests
from tests.artifacts.hub_fixtures import hub_environment, waits
from tests.artifacts.loopback_hub import COMMIT, REPO, hub, json_answer
from tests.artifacts.loopback_server import Answer, Loopback, Request, loopback
from tests.runtime.toy_plugins import CARD, WEIGHTS, tensor_file, write_toy

__all__ = ["hub_environment", "waits"]
FILES = {CARD: b"{}", WEIGHTS: tensor_file(), "README.md": b"---\nlicense: apache-2.0\n---\n", "part/config.json": b"{}",
         "SHA256SUMS": b"", "run.py": b"x", "pytorch_model.bin": b"x", "onnx/model.json": b"{}"}  # fmt: skip
WANTED = {CARD, WEIGHTS, "README.md", "part/config.json", "SHA256SUMS"}


@pytest.fixture
def served(hub_environment: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Loopback]:
    with loopback(hub(FILES)) as server:
        monkeypatch.setenv("HF_ENDPOINT", server.url)
        yield server


def refused(entry: ModelEntry, stores: Stores | None = None) -> ArtifactError:
    with pytest.raises(ArtifactError) as caught:
        obtain(entry, stores or Stores())
    return caught.value


def test_a_local_folder_has_neither_repository_nor_revision(tmp_path: Path) -> None:
    folder = write_toy(tmp_path / "toy")
    (folder / "README.md").write_text("---\nlicense: mit\n---\n")
    package = obtain(ModelEntry(str(folder)), Stores()).package
    assert (package.path, package.repo, package.revision, package.licence) == (folder, None, None, "mit")


def test_local_paths_take_no_revision_and_no_links(tmp_path: Path) -> None:
    folder = write_toy(tmp_path / "toy")
    link = tmp_path / "link"
    link.symlink_to(folder)
    assert refused(ModelEntry(str(link))).reason == "linked_folder"
    assert refused(ModelEntry(str(folder), revision="a" * 40)).reason == "revision_refused"
    assert refused(ModelEntry(f"{folder}@{'a' * 40}")).reason == "revision_refused"
    link.unlink()
    link.symlink_to(tmp_path / "absent")
    assert refused(ModelEntry(str(link))).reason == "missing_file"


def test_a_path_with_an_at_sign_is_a_path(tmp_path: Path) -> None:
    folder = write_toy(tmp_path / "toy@2")
    assert obtain(ModelEntry(str(folder)), Stores()).package.path == folder


@pytest.mark.parametrize("revision", [None, "main", "abc1234", "A" * 40])
def test_repositories_need_a_whole_commit(revision: str | None, hub_environment: Path) -> None:
    error = refused(ModelEntry(REPO, revision=revision))
    assert "a revision is required" in failure_reason(error)
    assert error.reason == "revision_required"


def test_two_revisions_conflict() -> None:
    assert refused(ModelEntry(f"{REPO}@{'a' * 40}", revision="b" * 40)).reason == "revision_conflict"
    assert split_reference(ModelEntry(f"{REPO}@{'a' * 40}", revision="a" * 40)) == (REPO, "a" * 40)


def test_a_repository_comes_whole_but_without_code_and_other_runtimes(served: Loopback) -> None:
    package = obtain(ModelEntry(REPO, revision=COMMIT), Stores()).package
    there = {path.relative_to(package.path).as_posix() for path in package.path.rglob("*") if path.is_file()}
    assert there == WANTED
    assert package.path.name == COMMIT
    assert (package.repo, package.revision, package.licence) == (REPO, COMMIT, "apache-2.0")


def test_a_second_start_makes_no_connection(served: Loopback) -> None:
    first = obtain(ModelEntry(REPO, revision=COMMIT), Stores()).package
    asked = len(served.requests)
    assert obtain(ModelEntry(f"{REPO}@{COMMIT}"), Stores()).package.path == first.path
    assert len(served.requests) == asked
    (first.path / WEIGHTS).unlink()  # what is missing is fetched again
    obtain(ModelEntry(REPO, revision=COMMIT), Stores())
    assert (first.path / WEIGHTS).read_bytes() == FILES[WEIGHTS]


def test_offline_uses_what_is_there(served: Loopback, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    assert refused(ModelEntry(REPO, revision=COMMIT)).reason == "offline_not_cached"
    monkeypatch.delenv("HF_HUB_OFFLINE")
    there = obtain(ModelEntry(REPO, revision=COMMIT), Stores()).package
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    asked = len(served.requests)
    assert obtain(ModelEntry(REPO, revision=COMMIT), Stores()).package.path == there.path
    assert len(served.requests) == asked


def test_a_hub_that_cannot_be_reached_is_asked_four_times(hub_environment: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    slept: list[float] = []
    with pytest.raises(ArtifactError) as caught:
        hub_package_module.hub_package(REPO, COMMIT, None, hub_environment, sleep=slept.append)
    assert caught.value.reason == "hub_unreachable"
    assert slept == [1, 2, 4]


def test_other_refusals_of_the_hub_are_final(hub_environment: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def gated(request: Request) -> Answer:
        return json_answer({"error": "gated"}, 401, **{"X-Error-Code": "GatedRepo"})

    slept: list[float] = []
    with loopback(gated) as server:
        monkeypatch.setenv("HF_ENDPOINT", server.url)
        with pytest.raises(ArtifactError) as caught:
            hub_package_module.hub_package(REPO, COMMIT, None, hub_environment, sleep=slept.append)
    assert failure_reason(caught.value).startswith("ArtifactError: access denied, gated or private")
    assert slept == []


def test_a_token_is_sent_and_never_shown(served: Loopback, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_TOKEN", "hf_secret")
    obtain(ModelEntry(REPO, revision=COMMIT), Stores())
    assert {request.headers.get("authorization") for request in served.requests} == {"Bearer hf_secret"}
    assert "hf_secret" not in refused(ModelEntry("acme/absent", revision=COMMIT)).message


def test_a_restricted_licence_stops_before_the_weights(hub_environment: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = {**FILES, "README.md": b"---\nlicense: cc-by-nc-4.0\n---\n"}
    with loopback(hub(files)) as server:
        monkeypatch.setenv("HF_ENDPOINT", server.url)
        error = refused(ModelEntry(REPO, revision=COMMIT))
        assert "a licence must be accepted" in failure_reason(error)
        assert "--accept-licence cc-by-nc-4.0" in error.message
        assert not any(request.path.endswith(WEIGHTS) for request in server.requests)
        obtain(ModelEntry(REPO, revision=COMMIT), Stores(accepted=("cc-by-nc-4.0",)))
        assert any(request.path.endswith(WEIGHTS) for request in server.requests)


def test_a_short_name_with_terms_needs_consent() -> None:
    error = refused(ModelEntry("gemma3-270m"))
    assert "a licence must be accepted" in failure_reason(error)
    assert "--accept-licence gemma" in error.message
    assert refused(ModelEntry("smollm2-135m-instruct", revision="a" * 40)).reason == "revision_refused"


def test_the_table_of_built_in_models() -> None:
    assert len({each.repo for each in builtins()}) == len(builtins()) >= 31
    for each in builtins():
        assert package_source.COMMIT.fullmatch(each.revision), each
        assert builtin_named(each.short_name) == each == builtin_named(each.repo)
    assert builtin_named("vela-1.0-encoder-307m-pii") is not None
    assert builtin_named("acme/unknown") is None


def test_bare_names_of_several_are_ambiguous(monkeypatch: pytest.MonkeyPatch) -> None:
    twins = (Builtin("a/guard", "1" * 40, "bert", None), Builtin("b/guard", "2" * 40, "bert", None))
    monkeypatch.setattr("headway.runtime.loading.builtins.builtins", lambda: twins)
    with pytest.raises(ArtifactError, match="a/guard, b/guard"):
        builtin_named("guard")


@pytest.mark.parametrize("given", [None, COMMIT[:7], COMMIT])
def test_a_built_in_name_has_its_pin(given: str | None, served: Loopback, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("headway.runtime.loading.builtins.builtins", lambda: (Builtin(REPO, COMMIT, "toy", 2),))
    assert obtain(ModelEntry("tiny", revision=given), Stores()).package.revision == COMMIT
    assert refused(ModelEntry("tiny", revision="1234567")).reason == "revision_required"


def test_names(tmp_path: Path) -> None:
    folder = write_toy(tmp_path / "toy")
    (folder / "a.gguf").write_bytes(b"x")
    assert default_name(ModelEntry(str(folder))) == "toy"
    assert default_name(ModelEntry(str(folder / "a.gguf"))) == "a"
    assert default_name(ModelEntry(f"acme/tiny:Q4@{COMMIT}")) == "acme/tiny"
    assert default_name(ModelEntry("vela-1.0-omni-nano")) == "vllm-sr/Vela-1.0-Omni-Nano"
    assert default_name(ModelEntry("sparrow-nano")) == "sparrow-nano"


@pytest.mark.parametrize("name", [WEIGHTS, CARD])
def test_one_changed_byte_in_the_cache_of_the_hub(name: str, served: Loopback) -> None:
    package = obtain(ModelEntry(REPO, revision=COMMIT), Stores()).package
    Digests(package).check({}, [WEIGHTS, CARD])
    blob = (package.path / name).resolve()
    content = bytearray(blob.read_bytes())
    content[-1] ^= 1
    blob.write_bytes(content)
    with pytest.raises(ArtifactError, match=f"a file hash does not match: {name}"):
        Digests(package).check({}, [WEIGHTS, CARD])
