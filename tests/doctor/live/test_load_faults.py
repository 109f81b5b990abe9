"""Servers that run badly: a full cache, too few places, one client, a long prompt in the way, a cold cache, a wrong key."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.doctor.live.diagnosed import doctor, first, fixes
from tests.doctor.live.load import clients, completion
from tests.e2e.served_model import serve
from tests.e2e.tiny_server import tiny_server

# KV bytes of a token of the tiny model: 2 x 2 layers x 2 heads x 16 x 2 B (bf16) = 256 B
_TOKEN_BYTES = 256


@pytest.mark.long
def test_a_cache_that_is_full(tmp_path: Path) -> None:
    """Room for about three sequences, twelve that want to grow: the scheduler has to take their blocks away again."""
    with (
        tiny_server(tmp_path, "--kv-cache-memory-bytes", str(700 * _TOKEN_BYTES), "--no-enable-prefix-caching") as served,
        clients(served.url, 12, lambda k: completion(f"request {k} tells a story", 200)),
    ):
        finding = first(doctor("serve", served.url, "--seconds", "6", "--requests", "0"))
        assert served.metric("vllm:num_preemptions_total") > 0, "the fault is there"
    assert finding["rule"] in ("T3", "T2")
    assert "preempt" in (finding["title"] + finding["cause"]).lower()
    assert "--max-num-seqs 256" not in fixes(finding)


def test_a_cap_on_the_sequences(tmp_path: Path) -> None:
    with (
        tiny_server(tmp_path, "--max-num-seqs", "2") as served,
        clients(served.url, 12, lambda k: completion(f"request {k}", 100)),
    ):
        finding = first(doctor("serve", served.url, "--seconds", "6", "--requests", "0"))
    assert finding["rule"] == "T1", "the cap, not the queue that it makes"
    assert "--max-num-seqs" in fixes(finding)


@pytest.mark.long
def test_a_client_that_asks_one_at_a_time(tmp_path: Path) -> None:
    with (
        tiny_server(tmp_path) as served,
        clients(served.url, 1, lambda k: completion(f"request {k}", 100)),
    ):
        finding = first(doctor("serve", served.url, "--seconds", "6", "--requests", "0", "--said", "the throughput is far too low"))
    assert finding["rule"] == "T4"


def test_an_idle_server_is_healthy(tmp_path: Path) -> None:
    with tiny_server(tmp_path) as served:
        report = doctor("serve", served.url, "--seconds", "2")
    assert not [finding for finding in report["findings"] if finding["confidence"] > 0.5]


@pytest.mark.long
def test_a_steady_load_is_healthy(tmp_path: Path) -> None:
    with (
        tiny_server(tmp_path) as served,
        clients(served.url, 4, lambda k: completion("the same beginning for all of them, " * 4 + str(k), 30), pause=0.05),
    ):
        report = doctor("serve", served.url, "--seconds", "5")
    assert not [finding for finding in report["findings"] if finding["confidence"] > 0.5], report["findings"]


@pytest.mark.long
def test_prompts_that_never_hit_the_prefix_cache(tmp_path: Path) -> None:
    """A clock at the start of the system prompt: every prompt is new from its first block on."""

    def body(k: int) -> dict[str, object]:
        return completion(f"[{k:06} now] " + "You are a helpful assistant with long instructions. " * 3, 4)

    sample = tmp_path / "requests.jsonl"
    sample.write_text("".join(json.dumps(body(k)) + "\n" for k in (17, 18)))
    with tiny_server(tmp_path) as served, clients(served.url, 2, body):
        finding = first(doctor("serve", served.url, "--seconds", "6", "--requests", "0", "--sample", str(sample)))
    assert finding["rule"] == "F4"
    assert "a number" in finding["cause"]
    assert "000017" not in json.dumps(finding), "request text is not shown"


def test_a_wrong_key(tmp_path: Path) -> None:
    with tiny_server(tmp_path, "--api-key", "the-right-key") as served:
        finding = first(doctor("serve", served.url, "--api-key", "another-key", "--seconds", "2"))
    assert finding["rule"] == "N4"
    assert "another-key" not in json.dumps(finding)


@pytest.mark.long
@pytest.mark.timeout(300)
def test_a_long_prompt_in_the_way(tmp_path: Path) -> None:
    """A whole long prompt in one step: short requests wait for it, and only then."""
    flags = ("--max-model-len", "8192", "--max-num-batched-tokens", "8192", "--no-enable-prefix-caching")
    with serve(tmp_path, *flags) as served, clients(served.url, 1, lambda k: completion(f"{k} " + "word " * 2600, 1), pause=0.1):
        finding = first(doctor("serve", served.url, "--seconds", "2", "--requests", "16"))
    assert finding["rule"] == "F2"
    assert "--max-num-batched-tokens" in fixes(finding) or "--long-prefill-token-threshold" in fixes(finding)
