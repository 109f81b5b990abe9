"""Layouts of 0.1 to 0.4: what comes out validates, says the same, and migrating it again changes nothing."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from headway.router.config.load import Source
from headway.router.config.migration.migrate import Migrated, migrate
from tests.router.config.documents import BASE, document_of

FLAT = """\
# kept from the first day
vllm_endpoints:
  - name: e1
    address: 127.0.0.1
    port: 8000
    weight: 2
  - name: e2
    address: llm.example.com
    provider_profile: remote
provider_profiles:
  remote: {type: openai, base_url: "https://llm.example.com/v1", auth_header: Authorization}
model_config:
  small:
    preferred_endpoints: [e1]
    param_size: 1b
    pricing: {currency: USD, prompt_per_1m: 0.1}
  large:
    preferred_endpoints: [e1, e2]
    reasoning_family: qwen3
    access_key: k
    loras: [{name: law-lora}]
default_model: small
default_reasoning_effort: high
reasoning_families:
  qwen3: {type: chat_template_kwargs, parameter: enable_thinking}
strategy: priority
keyword_rules:
  - name: words # sums
    operator: OR
    keywords: [sum]
categories:
  - name: law
    description: Law
    mmlu_categories: [law]
decisions:
  - name: sums
    priority: 5
    rules:
      operator: AND
      conditions:
        - {type: keyword, name: words}
    modelRefs:
      - model: large
        use_reasoning: true
    plugins:
      - type: semantic-cache
        configuration: {enabled: true, similarity_threshold: 0.9}
semantic_cache: {enabled: true, backend_type: memory, max_entries: 10}
classifier:
  category_model: {model_id: models/mom-domain-classifier, threshold: 0.6, use_cpu: true, category_mapping_path: x.json}
  pii_model: {model_id: models/mom-pii-classifier, threshold: 0.7}
prompt_guard: {enabled: true, model_id: models/mom-jailbreak-classifier, threshold: 0.7, use_modernbert: true}
bert_model: {model_id: models/mom-embedding-light, threshold: 0.6, use_cpu: true}
response_api: {enabled: true, store_backend: memory}
observability: {metrics: {enabled: true}}
auto_model_names: [MyAuto, auto]
include_config_models_in_list: true
clear_route_cache: true
"""

CLI_V01 = """\
version: v0.1
listeners:
  - {name: http, address: 0.0.0.0, port: 8899}
signals:
  keywords:
    - {name: words, operator: OR, keywords: [sum]}
  decision:
    - {name: harm, question: {type: noul, instructions: "Harmful?"}}
decisions:
  - name: sums
    rules: {operator: AND, conditions: [{type: keyword, name: words}, {type: decision, name: harm}]}
    modelRefs: [{model: small}]
providers:
  default_model: small
  default_reasoning_effort: low
  models:
    # the only one
    - name: small
      description: Fast
      context_window_size: 4096
      quality_score: 0.9
      endpoints:
        - {name: primary, endpoint: "localhost:8000", weight: 1, type: vllm}
      access_key: k
"""

V03_EARLY = """\
version: v0.3
listeners: []
providers:
  defaults: {default_model: small}
  model_targets:
    small: {provider_model_id: Small-1B, backend_refs: [b], auth_ref: a}
  backends:
    b: {endpoint: "localhost:8000", type: vllm}
  auth_profiles:
    a: {api_key_env: KEY}
routing:
  models: [{name: small, description: Fast}]
  decisions: [{name: d, modelRefs: [{model: small}]}]
global:
  modules: {prompt_guard: {enabled: false}}
  models: {embeddings: {semantic: {embedding_config: {top_k: 2}}}}
  integrations: {looper: {endpoint: "http://localhost:9", timeout_seconds: 10}}
"""


def once_and_again(text: str) -> Migrated:
    found = migrate(Source(text), {})
    assert found.complete, [*map(str, found.open), *map(str, found.remaining)]
    again = migrate(Source(found.text), {})
    assert (again.text, again.diff, again.done) == (found.text, "", ())
    return found


def test_the_flat_layout() -> None:
    found = once_and_again(FLAT)
    data: dict[str, Any] = yaml.safe_load(found.text)
    small, large = data["providers"]["models"]
    assert small["backend_refs"] == [{"name": "e1", "endpoint": "127.0.0.1:8000", "weight": 2}]
    assert large["backend_refs"] == [
        {"name": "e1", "endpoint": "127.0.0.1:8000", "weight": 2, "api_key": "k"},
        {"name": "e2", "provider": "openai", "base_url": "https://llm.example.com/v1", "auth_header": "Authorization", "api_key": "k"},
    ]
    assert data["providers"]["defaults"] == {"model": "small", "reasoning_effort": "high"}
    assert large["reasoning"]["parameter"] == "enable_thinking"
    assert {card["name"]: card for card in data["routing"]["modelCards"]} == {
        "small": {"name": "small", "param_size": "1b"},
        "large": {"name": "large", "loras": [{"name": "law-lora"}]},
    }
    assert data["routing"]["signals"]["domains"][0]["name"] == "law"
    assert data["routing"]["decisions"][0]["plugins"][0]["type"] == "response_cache"
    assert data["global"]["stores"]["response_cache"]["max_entries"] == 10
    assert data["global"]["router"] == {"list_backend_models": True, "clear_route_cache": True}
    assert data["entrypoints"] == [{"model_names": ["MyAuto", "auto"], "recipe": "default"}]
    catalog = data["global"]["model_catalog"]
    assert {name: each["artifact"] for name, each in catalog["deployments"].items()} == {
        "prompt-guard": "vllm-sr/Vela-1.0-Encoder-307M-Guard",
        "domain-classifier": "vllm-sr/Vela-1.0-Encoder-307M-Domain",
        "pii-classifier": "vllm-sr/Vela-1.0-Encoder-307M-PII",
        "embedding": "vllm-sr/Vela-1.0-Encoder-307M-Embedding",
    }
    assert catalog["bindings"]["pii_classifier"] == {"deployment": "pii-classifier", "contract": "token_spans.v1"}
    assert catalog["modules"]["classifier"]["domain"] == {"threshold": 0.6}
    assert catalog["embeddings"]["semantic"]["embedding_config"] == {"min_score_threshold": 0.6}
    assert found.text.startswith("# kept from the first day\n")
    assert "name: words # sums" in found.text


def test_the_layout_of_the_first_command_line() -> None:
    found = once_and_again(CLI_V01)
    document = document_of(found.text)
    assert document.providers is not None
    (model,) = document.providers.models or ()
    assert [(ref.name, ref.endpoint, ref.provider, ref.api_key) for ref in model.backend_refs or ()] == [("primary", "localhost:8000", "vllm", "k")]
    assert document.providers.defaults is not None
    assert (document.providers.defaults.model, document.providers.defaults.reasoning_effort) == ("small", "low")
    assert document.routing is not None
    (card,) = document.routing.modelCards or ()
    assert (card.description, card.context_window_size) == ("Fast", 4096)
    assert "    # the only one\n    - name: small\n" in found.text
    assert "type: systemone" in found.text


def test_early_drafts_of_v03() -> None:
    data: dict[str, Any] = yaml.safe_load(once_and_again(V03_EARLY).text)
    assert data["providers"] == {
        "defaults": {"model": "small"},
        "models": [
            {"name": "small", "provider_model_id": "Small-1B", "backend_refs": [{"name": "b", "endpoint": "localhost:8000", "provider": "vllm", "api_key_env": "KEY"}]}
        ],
    }
    assert data["routing"]["modelCards"] == [{"name": "small", "description": "Fast"}]
    assert data["global"] == {
        "integrations": {"looper": {"timeout_seconds": 10}},
        "model_catalog": {"modules": {"prompt_guard": {"enabled": False}}, "embeddings": {"semantic": {"embedding_config": {"top_k": 2}}}},
    }


def test_a_current_file_is_left_alone_to_the_byte() -> None:
    text = BASE.replace("version: v0.3", "version:   v0.3   # ours") + "\n\n# the end\n"
    found = migrate(Source(text), {})
    assert (found.text, found.diff, found.done, found.complete) == (text, "", (), True)


@pytest.mark.parametrize("dash", ["  - ", "- ", "    - "])
def test_the_indentation_of_lists_stays(dash: str) -> None:
    text = f"version: v0.1\nlisteners:\n{dash}name: a\n{' ' * len(dash)}port: 1\nproviders:\n  models:\n  {dash}name: m # it\n  {' ' * len(dash)}endpoints:\n  {' ' * len(dash)}{dash}endpoint: h:1\n"
    found = once_and_again(text)
    assert f"listeners:\n{dash}name: a\n" in found.text
    assert f"\n  {dash}name: m # it\n" in found.text


def test_comments_stay_beside_keys_that_get_another_name() -> None:
    text = "version: v0.3\nproviders:\n  defaults:\n    default_model: small # the quick one\n  models:\n    - name: small\n      backend_refs: [{endpoint: 'h:1'}]\n"
    line = once_and_again(text).text.splitlines()[3]
    assert line.split() == ["model:", "small", "#", "the", "quick", "one"]


def test_anchors_stay() -> None:
    text = "version: v0.1\nproviders:\n  models:\n    - name: a\n      reliability: &r {retry_count: 2}\n      endpoints: [{endpoint: 'h:1'}]\n    - name: b\n      reliability: *r\n      endpoints: [{endpoint: 'h:2'}]\n"
    found = once_and_again(text)
    assert "reliability: &r" in found.text
    assert "reliability: *r" in found.text
