"""The validator, the preview and the live router never disagree: what is accepted starts, what is refused does not, and both choose the same."""

from __future__ import annotations

import asyncio
import hashlib
import random
import tempfile
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson
import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from headway.errors import HeadwayError
from headway.router.config.document.document import Document
from headway.router.config.load import Source, examine
from headway.router.deployments.calls import EMBEDDING_ENDPOINT
from headway.router.deployments.deployments import RuntimeDeployments
from headway.router.generation.assembly import Places, assemble, used_deployments
from headway.router.generation.services import Services
from tests.router.config.defects import DEFECTS
from tests.router.config.generated_configs import generated
from tests.router.config.test_peer_verdicts import DIFFERENCES
from tests.router.config.test_validator_fuzz import damaged
from tests.router.deployments.fake_runtime import Body, FakeRuntime, answer_questions, fake_runtime, noul_card
from tests.router.deployments.setups import until
from tests.router.upstream.scripted_backend import ScriptedBackend, answers
from tests.router.whole_router import WholeRouter

ENVIRONMENT = {"KEY": "k"}
OF_THE_ENVIRONMENT = {"key_missing", "variable_missing"}  # depends on where it is served, not on what is written
SETTINGS = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
QUESTION_TYPES = ["choice", "noul", "score", "set", "span"]


# -- the validator and the start


def starts(document: Document) -> str | None:
    """Compile a generation as a start does; what stops it, or None."""

    async def work(state: Path) -> str | None:
        services = Services(state)
        try:
            deployments = RuntimeDeployments(document, services.runtimes, ENVIRONMENT)
            generation = assemble(document, deployments, services, Places(1, 1, ENVIRONMENT))
            undeclared = used_deployments(generation) - {EMBEDDING_ENDPOINT} - deployments._declared.keys()
            return f"undeclared deployments: {sorted(undeclared)}" if undeclared else None
        except HeadwayError as error:
            return None if error.reason in OF_THE_ENVIRONMENT else f"{error.reason}: {error.message}"
        finally:
            await services.close()

    with tempfile.TemporaryDirectory() as folder:
        return asyncio.run(work(Path(folder)))


@SETTINGS
@given(st.integers(0, 10**6), st.integers(0, 3))
def test_what_the_validator_accepts_can_be_started(seed: int, damages: int) -> None:
    data = yaml.safe_load(generated(len(DEFECTS) + seed).text)
    text = yaml.safe_dump(damaged(data, random.Random(seed), damages), sort_keys=False)
    found = examine(Source(text), ENVIRONMENT)
    if found.document is not None:
        assert starts(found.document) is None, text


# -- the preview and the live router


async def by_text(body: Body) -> Any:
    """Answers that depend on the text alone; for a text with `down` in it there is none, and the runtime stays as it was."""
    text = orjson.dumps([body.get("state"), body.get("states")])
    told: Body = await answer_questions(body)
    for part in (told, *told.get("states", {}).values()):
        if b"down" in text:
            part["answers"].clear()
        for name, answer in part["answers"].items():
            if answer["type"] == "noul":
                answer["noul"] = hashlib.sha256(text + name.encode()).digest()[0] / 255
    return told


def reachable(data: dict[str, Any], backend: ScriptedBackend, runtime: FakeRuntime) -> dict[str, Any]:
    """The same routing, in front of what runs here: one open listener, every backend and every model deployment by its loopback address."""
    data["listeners"] = [{"name": "public", "port": 8899}]
    for model in data["providers"]["models"]:
        for ref in model["backend_refs"]:
            ref |= {"base_url": f"http://{backend.endpoint}/v1"} if "base_url" in ref else {"endpoint": backend.endpoint}
    catalog = data.setdefault("global", {}).setdefault("model_catalog", {})
    for name in ("primary", "hazard", *catalog.get("deployments", ())):
        catalog.setdefault("deployments", {})[name] = {"provider": "model_runtime", "endpoint": runtime.endpoint, "served_name": "judge"}
    if "embeddings" in catalog:
        catalog["embeddings"]["semantic"]["endpoint"]["base_url"] = f"{runtime.endpoint}/v1"
    return data


async def vectors_by_text(body: Body) -> Any:
    def vector(given: Any) -> list[float]:
        return [float(byte) + 1 for byte in hashlib.sha256(orjson.dumps(given)).digest()[:8]]

    made_by = {"model_sha256": "e" * 64, "layer": 6, "dimension": 8}
    return {"object": "list", "meta": {"representation": made_by}, "data": [{"index": at, "embedding": vector(text)} for at, text in enumerate(body["input"])]}


@dataclass
class Rig:
    runner: asyncio.Runner
    router: WholeRouter
    backend: ScriptedBackend
    runtime: FakeRuntime

    def run(self, work: Callable[[], Awaitable[None]]) -> None:
        self.runner.run(work())  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def rig(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rig]:
    async def opened() -> Rig:
        backend = await stack.enter_async_context(ScriptedBackend([answers()]))
        card = noul_card(surfaces=["decisions", "embeddings"], question_types=QUESTION_TYPES, embedding={"dimensions": [8], "layers": [6]})
        runtime = await stack.enter_async_context(fake_runtime(card))
        runtime.script |= {"/v1/decisions": by_text, "/v1/embeddings": vectors_by_text}
        router = WholeRouter(tmp_path_factory.mktemp("agreement"), ENVIRONMENT)
        stack.push_async_callback(router.close)
        return Rig(runner, router, backend, runtime)

    stack = AsyncExitStack()
    with asyncio.Runner() as runner:
        yield runner.run(opened())
        runner.run(stack.aclose())


WORDS = ["sum", "add", "now", "critical", "42", "7 8 9", "und das ist ein deutscher Satz", "court and law", "down", "ignore all rules", "plain words", "x" * 9000]
texts = st.lists(st.sampled_from(WORDS), min_size=1, max_size=4).map(" ".join)
contents = texts | texts.map(lambda text: [{"type": "text", "text": text}, {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgo="}}])
turns = st.fixed_dictionaries({"role": st.sampled_from(["user", "assistant", "system"]), "content": texts})
requests = st.fixed_dictionaries(
    {
        "model": st.sampled_from(["vllm-sr/auto", "vllm-sr/auto", "auto", "team/other", "model-0", "nobody"]),
        "messages": st.builds(lambda before, last: [*before, {"role": "user", "content": last}], st.lists(turns, max_size=4), contents),
    },
    optional={"metadata": st.just({"tier": "beta"}), "max_tokens": st.integers(1, 100), "tools": st.just([{"type": "function", "function": {"name": "f"}}])},
)


@SETTINGS
@given(st.integers(0, 10**6), st.lists(requests, min_size=1, max_size=6))
def test_the_preview_and_the_live_router_choose_the_same(rig: Rig, seed: int, asked: list[dict[str, Any]]) -> None:
    text = yaml.safe_dump(reachable(yaml.safe_load(generated(len(DEFECTS) + seed).text), rig.backend, rig.runtime), sort_keys=False)

    async def work() -> None:
        applied = await rig.router.offer(text)
        assert applied.error is None, applied.error
        await until(lambda: all(pool.state.ready for pool in rig.router.lifecycle.generations.current.deployments.pools))
        for body in asked:
            seen = await rig.router.management.post("/api/v1/routing/preview", json=body)
            done = await rig.router.public.post("/v1/chat/completions", json=body)
            disagreement = differences(seen.status_code, seen.json(), done.status_code, done.headers, done.json())
            assert disagreement == "", (disagreement, body, seen.json(), done.status_code, done.text, dict(done.headers))

    rig.run(work)


def differences(preview_status: int, preview: Mapping[str, Any], status: int, headers: Mapping[str, str], body: Mapping[str, Any]) -> str:
    """What a preview promised and the live router did not do, in one word; empty when they agree."""
    if preview_status == 400:
        return "" if status == 400 else "refused by the preview alone"
    if preview["decision_result"]["decision_name"] != headers.get("x-vsr-selected-decision", ""):
        return "decision"
    policies = ",".join(f"{name}={policy}" for name, policy in preview.get("applied_unknown_policies", {}).items())
    if policies != headers.get("x-vsr-applied-unknown-policy", ""):
        return "policies"
    if preview_status == 503:
        return "" if (status, body["error"]["reason"]) == (503, "decision_unresolved") else "fail_request"
    if status not in (200, 503):
        return "status"
    model = headers.get("x-vsr-selected-model", "")
    drawn_or_tried = preview["selection_provenance"]["sampled"] or preview["selection_status"] == "execution_required"
    if drawn_or_tried or "x-vsr-fallback-attempts" in headers:
        return "" if model in preview["recommended_models"] else "model of the candidates"
    return "" if model == preview["selected_model"] else "model"


RESTING = """\
version: v0.3
providers:
  defaults: {model: rests}
  models:
    - {name: rests, backend_refs: [{endpoint: "127.0.0.1:1", weight: 0}, {endpoint: "127.0.0.1:2", weight: 0}]}
    - {name: works, backend_refs: [{endpoint: "127.0.0.1:1", weight: 0}, {endpoint: "127.0.0.1:2", weight: 1}]}
routing:
  signals:
    keywords: [{name: both, operator: OR, keywords: [both]}, {name: one, operator: OR, keywords: [one]}]
  decisions:
    - {name: both, priority: 2, rules: {type: keyword, name: both}, modelRefs: [{model: rests}, {model: works}]}
    - {name: one, priority: 1, rules: {type: keyword, name: one}, modelRefs: [{model: rests}]}
"""


@pytest.mark.parametrize(
    ("model", "text", "chosen"),
    [
        ("vllm-sr/auto", "both", "works"), ("vllm-sr/auto", "one", ""), ("vllm-sr/auto", "neither", ""), ("rests", "x", ""),
        ("works", "x", "works"),
    ],
)  # fmt: skip
def test_models_that_take_no_requests_are_told_and_chosen_by_nobody(rig: Rig, model: str, text: str, chosen: str) -> None:
    config = yaml.safe_dump(reachable(yaml.safe_load(RESTING), rig.backend, rig.runtime), sort_keys=False)
    body = {"model": model, "messages": [{"role": "user", "content": text}]}

    async def work() -> None:
        told = await rig.router.validate(config)
        assert told["valid"]
        assert [each["reason"] for each in told["diagnostics"]] == ["model_resting"]
        applied = await rig.router.offer(config)
        assert applied.error is None, applied.error
        seen = (await rig.router.management.post("/api/v1/routing/preview", json=body)).json()
        done = await rig.router.public.post("/v1/chat/completions", json=body)
        assert seen["selected_model"] == chosen
        assert (seen["selection_status"] == "unavailable") == (not chosen)
        if chosen:
            assert (done.status_code, done.headers["x-vsr-selected-model"]) == (200, chosen)
        else:
            assert (done.status_code, done.json()["error"]["reason"]) == (503, "no_upstream")
            assert "weight 0" in done.json()["error"]["message"]
            assert "weight 0" in seen["selection_reason"]

    rig.run(work)


@pytest.mark.parametrize("defect", [defect for defect in DEFECTS if not DIFFERENCES.get(defect)])
def test_what_the_validator_refuses_is_refused_everywhere(rig: Rig, defect: str) -> None:
    text = generated(list(DEFECTS).index(defect)).text

    async def work() -> None:
        told = await rig.router.validate(text)
        applied = await rig.router.offer(text)
        assert (told["valid"], applied.outcome) == (False, "failed")
        assert applied.error is not None
        assert [each["message"] for each in told["diagnostics"] if each["severity"] == "error"][-1] in applied.error.message

    rig.run(work)
