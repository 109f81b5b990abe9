"""What a configuration says about deployments, and what is made of it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from headway.router.config.document.document import Document
from headway.router.deployments.launching import file_name, launch_of, worker_id
from headway.router.deployments.pool import Pool
from headway.router.deployments.progress import waiting_message
from headway.router.deployments.result_cache import ResultCache
from headway.router.deployments.runtime_client import RuntimeClient, server_timing
from headway.router.deployments.runtime_environment import RuntimeEnvironment
from headway.router.deployments.specification import (
    Replica,
    Specification,
    declared,
    default_decision_model,
    specifications,
)
from headway.router.deployments.tempo import USUAL
from headway.router.deployments.usage import asked_by, granted, native_models
from headway.router.deployments.worker import Worker
from headway.router.deployments.worker_state import WorkerState
from headway.router.metrics.registry import RouterMetrics
from headway.runtime.flags import SRUN_FLAGS
from tests.router.deployments.setups import document

ENVIRONMENT = RuntimeEnvironment(command=("srun",), threads=2)
LOCAL = {"provider": "model_runtime", "artifact": "/models/judge"}


def catalog(**fields: Any) -> Document:
    return Document.model_validate({"version": "v0.3", "global": {"model_catalog": fields}})


@pytest.mark.parametrize(
    ("given", "names"),
    [
        (Document(version="v0.3"), {"primary", "hazard"}),
        (catalog(), {"primary", "hazard"}),
        (catalog(deployments=None), set()),
        (catalog(deployments={"hazard": None}), {"primary"}),
        (catalog(deployments={"mine": LOCAL}), {"primary", "hazard", "mine"}),
    ],
)
def test_default_deployments(given: Document, names: set[str]) -> None:
    assert declared(given).keys() == names


def test_an_entry_replaces_the_whole_of_a_default_one() -> None:
    found = specifications(catalog(deployments={"primary": LOCAL}))["primary"]
    assert (found.artifact, found.revision, found.replicas) == ("/models/judge", None, (Replica("auto", None, "primary"),))


def test_the_default_decision_model() -> None:
    assert default_decision_model(catalog()) == "primary"
    assert default_decision_model(catalog(system={"decision_model": {"deployment": "mine"}})) == "mine"


def test_replicas_and_names() -> None:
    given = document({
        "a": {"provider": "model_runtime", "artifact": "o/n", "revision": "a" * 40, "replicas": [{"device": "cuda:0"}, {"endpoint": "http://h:1", "served_name": "x"}]},
        "b": {"provider": "model_runtime", "endpoint": "http://h:1"},
        "c": {**LOCAL, "public_name": "acme/c"},
    })  # fmt: skip
    found = specifications(given)
    assert found["a"].replicas == (Replica("cuda:0", None, "a"), Replica("auto", "http://h:1", "x"))
    assert found["a"].managed
    assert found["b"].replicas == (Replica("auto", "http://h:1", "b"),)
    assert not found["b"].managed
    names = {name: each.name for name, each in native_models(given).items()}
    assert (names["o/n"], names["acme/c"]) == ("a", "c")


def test_what_is_granted_or_asked_is_used() -> None:
    class Asks:
        def deployments(self) -> frozenset[str]:
            return frozenset({"x"})

    assert asked_by([Asks(), object()]) == {"x"}
    models = [{"name": "m", "api_format": "systemone", "deployment": "b"}]
    given = Document.model_validate({
        "version": "v0.3", "providers": {"models": models},
        "listeners": [{"name": "l", "port": 1, "systemone": {"models": ["acme/c", "nobody"]}}],
        "global": {"model_catalog": {"deployments": {"b": LOCAL, "c": {**LOCAL, "public_name": "acme/c"}}}},
    })  # fmt: skip
    assert granted(given) == {"b", "c"}


def identity(environment: RuntimeEnvironment = ENVIRONMENT, **fields: Any) -> str:
    return worker_id(specifications(document({"judge": {**LOCAL, **fields}}))["judge"], 0, environment)


def test_a_worker_is_the_same_as_long_as_nothing_about_it_changes() -> None:
    same = identity()
    assert same == identity(public_name="acme/other", input={"max_tokens": 5, "overflow": "window"})  # only the router reads these
    others = [identity(device="cpu"), identity(max_num_seqs=2), identity(max_num_batched_tokens=16), identity(artifact="/models/other")]
    others += [identity(RuntimeEnvironment(command=("srun",), threads=3)), identity(RuntimeEnvironment(command=("other",), threads=2))]
    others += [identity(accept_licences=["gemma"])]
    assert len({same, *others}) == 8
    assert len(same) == 14


def test_files_and_command_of_a_worker() -> None:
    specification = Specification("a/b c" * 20, (Replica("cuda:0", None, "j"),), "o/n", "a" * 40, engine={"batch_window_ms": 1.0})
    name = file_name(specification, "r-0123456789ab")
    assert name == f"{'a_b_c' * 4}a_b_-r-0123456789ab"
    launch = launch_of(specification, specification.replicas[0], Path("/run"), name, RuntimeEnvironment(command=("srun",), cache=Path("/cache")))
    assert launch.command == (
        "srun", "serve", "--models", f"/run/{name}.models.json", "--uds", f"/run/{name}.sock", "--max-request-bytes", "67108864",
        "--max-bundle-tasks", "1024", "--cache-dir", "/cache",
    )  # fmt: skip
    assert json.loads(launch.models) == {"models": [{"model": "o/n", "revision": "a" * 40, "name": "j", "device": "cuda:0", "batch_window_ms": 1.0}]}


def test_licences_that_the_operator_accepts_reach_the_worker() -> None:
    specification = specifications(document({"judge": {**LOCAL, "accept_licences": ["gemma", "llama3"]}}))["judge"]
    command = launch_of(specification, specification.replicas[0], Path("/run"), "n", RuntimeEnvironment(command=("srun",))).command
    words = [command[at + 1] for at, word in enumerate(command) if word == "--accept-licence"]
    assert words == ["gemma", "llama3"]
    assert {"--accept-licence"} <= {f"--{flag.name}" for flag in SRUN_FLAGS}


@pytest.mark.parametrize("fields", [{"accept_licences": ["--device"]}, {"accept_licences": [""]}, {"accept_licences": "gemma"}])
def test_what_is_no_word_of_a_licence(fields: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        document({"judge": {**LOCAL, **fields}})


def test_an_attached_runtime_accepts_its_licences_itself() -> None:
    with pytest.raises(ValidationError, match="accepted its licences itself"):
        document({"judge": {"provider": "model_runtime", "endpoint": "http://127.0.0.1:1", "accept_licences": ["gemma"]}})


def test_what_the_start_waits_for() -> None:
    def pool(name: str, *states: str) -> Pool:
        workers = []
        for state in states:
            worker = Worker("r", RuntimeClient.__new__(RuntimeClient), name, "cpu", USUAL)
            worker.state = WorkerState(state)  # type: ignore[arg-type]
            workers.append(worker)
        return Pool(Specification(name, (Replica(),), f"acme/{name}"), workers, RouterMetrics())

    pools = [pool("a", "ready"), pool("b", "ready", "warming"), pool("c", "loading")]
    expected = "Waiting for Router-managed model deployments, 1 of 3 ready: b (acme/b) warming, c (acme/c) loading"
    assert waiting_message(pools) == expected
    many = [pool(f"d{number}", "loading") for number in range(8)]
    assert waiting_message(many).endswith("d4 (acme/d4) loading, and 3 more")


def test_the_oldest_answer_leaves_a_full_cache() -> None:
    cache = ResultCache(2)
    cache.put(b"a", {"n": 1}, 1)
    cache.put(b"b", {"n": 2}, 1)
    assert cache.get(b"a") == {"n": 1}
    cache.put(b"c", {"n": 3}, 1)
    assert [cache.get(key) for key in (b"a", b"b", b"c")] == [{"n": 1}, None, {"n": 3}]
    cache.put(b"d", {}, 1 << 20)  # too long
    assert cache.get(b"d") is None
    assert not ResultCache(0).is_on


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("parse;dur=1, total;dur=2000", {"parse": 0.001, "total": 2.0}),
        ("", {}),
        ("total;dur=-1, parse;dur=nan, queue;dur=x, other;dur=1, forward", {}),
        ("total;dur=1e300", {}),
    ],
)
def test_server_timing(text: str, found: dict[str, float]) -> None:
    assert server_timing(text) == found
