"""Every field that versions before took: refused at load with the command's name, repaired by the command."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from headway.errors import ConfigError
from headway.router.config.load import Source, examine
from headway.router.config.migration.execution import runtime_device
from headway.router.config.migration.legacy_models import is_retired, repository_of
from headway.router.config.migration.migrate import migrate
from tests.router.config.documents import BASE, base, changed

CATALOG = ("global", "model_catalog")
DEPLOYMENT = {"provider": "model_runtime", "artifact": "/models/a", "public_name": "a"}


def deployment(**fields: Any) -> dict[str, Any]:
    return changed(*CATALOG, "deployments", to={"d": {**DEPLOYMENT, **fields}})


def module(*path: str, **fields: Any) -> dict[str, Any]:
    return changed(*CATALOG, "modules", *path, to=fields)


REPAIRED: dict[str, dict[str, Any]] = {
    "precision": deployment(precision="fp16"),
    "precision native": deployment(precision="native"),
    "custom_ops_profile": deployment(custom_ops_profile="x"),
    "compilation_cache_dir": deployment(compilation_cache_dir="/x"),
    "profile": deployment(profile="max_speed"),
    "candle": deployment(provider="candle", artifact="models/mom-pii-classifier", device="metal:0"),
    "ort": deployment(provider="ort", artifact="models/mom-domain-classifier", device="migraphx:1", precision="fp32"),
    "openvino": deployment(provider="openvino", artifact="/m", device="GPU.0"),
    "variant": module("prompt_guard", variant="x"),
    "model_type": module("prompt_guard", model_type="bert"),
    "use_modernbert": module("classifier", "domain", use_modernbert=True),
    "use_mmbert_32k": module("classifier", "pii", use_mmbert_32k=True),
    "feedback": module("feedback_detector", use_mmbert_32k=True, model_id="models/mom-feedback-detector", feedback_mapping_path="f"),
    "fact check": module("hallucination_mitigation", "fact_check", use_mmbert_32k=True, model_id="models/mom-halugate-sentinel"),
    "nli filtering": module("hallucination_mitigation", "detector", enable_nli_filtering=True, nli_entailment_threshold=0.5),
    "detector backend": module("hallucination_mitigation", "detector", backend="candle", endpoint="x"),
    "explainer": module("hallucination_mitigation", explainer={"model_id": "models/mom-halugate-explainer"}),
    "nli_model": module("hallucination_mitigation", nli_model={"model_id": "x"}),
    "system explainer": changed(*CATALOG, "system", to={"hallucination_explainer": "models/mom-halugate-explainer"}),
    "explainer binding": changed(*CATALOG, "bindings", to={"hallucination_explainer": {"deployment": "primary", "contract": "x"}}),
    "embedding backend": changed(*CATALOG, "embeddings", to={"semantic": {"embedding_config": {"backend": "candle"}}}),
    "gemma path": changed(*CATALOG, "embeddings", to={"semantic": {"gemma_model_path": ""}}),
    "bert path": changed(*CATALOG, "embeddings", to={"semantic": {"bert_model_path": "models/mom-embedding-light"}}),
    "bert type": changed(*CATALOG, "embeddings", to={"semantic": {"embedding_config": {"model_type": "bert"}}}),
    "mmbert path": changed(*CATALOG, "embeddings", to={"semantic": {"mmbert_model_path": "models/mmbert-embed-32k-2d-matryoshka", "use_cpu": True}}),
    "polarity_guard": changed("global", "stores", to={"response_cache": {"polarity_guard": True}}),
    "rule use_nli": changed("routing", "signals", "hallucination", to=[{"name": "h", "use_nli": True}]),
    "plugin use_nli": changed("routing", "decisions", 0, "plugins", to=[{"type": "hallucination", "configuration": {"enabled": False, "use_nli": True}}]),
    "auto name": changed("global", "router", to={"auto_model_name": "MyAuto"}),
    "list name": changed("global", "router", to={"include_config_models_in_list": True}),
    "looper endpoint": changed("global", "integrations", to={"looper": {"endpoint": "http://x"}}),
    "default_model": changed("providers", "defaults", to={"default_model": "small"}),
    "reasoning_family": changed("providers", "models", 0, "reasoning_family", to="qwen3"),
    "backend type": changed("providers", "models", 0, "backend_refs", 0, "type", to="vllm"),
    "quality_score": changed("routing", "modelCards", 0, "quality_score", to=0.5),
}


@pytest.mark.parametrize("name", REPAIRED)
def test_refused_then_repaired(name: str) -> None:
    text = yaml.safe_dump(REPAIRED[name], sort_keys=False)
    refused = [each for each in examine(Source(text), {}).diagnostics if each.severity == "error"]
    assert refused, text
    found = migrate(Source(text), {})
    assert found.done
    assert found.complete, [*map(str, found.open), *map(str, found.remaining)]
    assert migrate(Source(found.text), {}).diff == ""


@pytest.mark.parametrize(
    ("provider", "device", "expected"),
    [
        ("candle", "metal:0", "mps"),
        ("candle", None, "cpu"),
        ("candle", "cuda:1", "cuda:1"),
        ("ort", "rocm:0", "rocm:0"),
        ("ort", "migraphx:2", "rocm:2"),
        ("ort", "migraphx", "rocm:0"),
        ("openvino", "GPU.0", "cpu"),
        ("openvino", "CPU", "cpu"),
        ("ort", "npu:0", "cpu"),
    ],
)
def test_devices(provider: str, device: str | None, expected: str) -> None:
    found, remark = runtime_device(provider, device)
    assert found == expected
    assert bool(remark) == (device in ("GPU.0", "npu:0"))


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("models/mom-domain-classifier", "vllm-sr/Vela-1.0-Encoder-307M-Domain"),
        ("models/Vela-1.0-Encoder-307M-PII", "vllm-sr/Vela-1.0-Encoder-307M-PII"),
        ("jailbreak-detector", "vllm-sr/Vela-1.0-Encoder-307M-Guard"),
        ("models/mom-embedding-pro", "Qwen/Qwen3-Embedding-0.6B"),
        ("/opt/mine", None),
        (None, None),
    ],
)
def test_earlier_names_of_models(name: str | None, expected: str | None) -> None:
    assert repository_of(name) == expected


def test_retired_models() -> None:
    assert is_retired("models/mom-halugate-explainer")
    assert not is_retired("models/mom-halugate-detector")


def test_a_profile_becomes_what_it_stood_for() -> None:
    found = migrate(Source(yaml.safe_dump(deployment(profile="shared_context"))), {})
    assert "enable_shared_context: true" in found.text
    unknown = migrate(Source(yaml.safe_dump(deployment(profile="turbo"))), {})
    assert [step.path for step in unknown.open] == ["global.model_catalog.deployments.d.profile"]


LATENCY = """\
version: v0.2
providers: {models: [{name: small, backend_refs: [{endpoint: "h:1"}]}]}
routing:
  signals:
    keywords: [{name: words, operator: OR, keywords: [sum]}]
    latency: [{name: quick, ttft_percentile: 50}]
  decisions:
    - name: d
      rules: {operator: OPERATOR, conditions: [{type: keyword, name: words}, {type: latency, name: quick}]}
      modelRefs: [{model: small}]
"""


def test_a_condition_on_latency_under_and_is_an_algorithm_now() -> None:
    found = migrate(Source(LATENCY.replace("OPERATOR", "AND")), {})
    assert found.complete
    data = yaml.safe_load(found.text)
    decision = data["routing"]["decisions"][0]
    assert decision["algorithm"] == {"type": "latency_aware", "latency_aware": {"ttft_percentile": 50}}
    assert decision["rules"]["conditions"] == [{"type": "keyword", "name": "words"}]
    assert "latency" not in data["routing"]["signals"]


def test_under_or_it_means_something_else_and_a_person_has_to_choose() -> None:
    found = migrate(Source(LATENCY.replace("OPERATOR", "OR")), {})
    assert not found.complete
    assert [step.path for step in found.open] == ["routing.decisions[0].rules.conditions[1]"]
    assert "latency_aware" in found.open[0].message
    assert any(each.line is not None for each in found.remaining)


def test_what_cannot_be_mapped_is_listed_and_left() -> None:
    data = base()
    data["routing"]["decisions"][0]["algorithm"] = {"type": "elo", "elo": {"k": 3}}
    data["treshold"] = 1
    data["global"] = {"model_catalog": {"modules": {"prompt_compression": {"enabled": True}}}}
    found = migrate(Source(yaml.safe_dump(data, sort_keys=False)), {})
    assert not found.complete
    assert [step.path for step in found.open] == ["routing.decisions[0].algorithm.type"]
    assert {each.reason for each in found.remaining} == {"not_supported", "unknown_key"}
    assert "treshold" in found.text


@pytest.mark.parametrize("text", ["", "a: [", "- 1", BASE + "---\nversion: v0.3\n", "a: 1\na: 2\n"])
def test_texts_that_are_no_configuration(text: str) -> None:
    with pytest.raises(ConfigError) as caught:
        migrate(Source(text, "c.yaml"))
    assert "c.yaml cannot be migrated" in caught.value.message


def test_variables_stay_references() -> None:
    text = BASE.replace("version: v0.3", "version: v0.1").replace('"127.0.0.1:8000"', '"${HOST:-h}:1"')
    assert "${HOST:-h}:1" in migrate(Source(text), {"HOST": "secret"}).text
