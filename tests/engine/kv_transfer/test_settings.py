"""--kv-transfer-config and kv_transfer_params: what is taken, and what is refused in which words."""

from __future__ import annotations

from typing import Any

import pytest

from headway.engine.config import EngineConfig
from headway.engine.kv_transfer.params import RemotePrefill, TransferParams, transfer_params
from headway.errors import ConfigError, NotBuiltError, RequestError

PLAIN = {"kv_connector": "NixlConnector", "kv_role": "kv_both"}
SOURCE = {"do_remote_prefill": True, "remote_host": "h", "remote_port": 5, "remote_engine_id": "e", "remote_request_id": "r"}


def test_a_command_for_vllm_is_understood() -> None:
    given = {**PLAIN, "kv_role": "kv_consumer", "kv_ip": "10.0.0.5", "kv_port": 7000, "kv_buffer_size": 5e6, "kv_rank": 1, "kv_load_failure_policy": "fail", "kv_connector_extra_config": {"kv_lease_duration": 180}}
    settings = EngineConfig("m", kv_transfer_config=given).kv_transfer
    assert settings is not None
    assert (settings.host, settings.port, settings.buffer_bytes, settings.lease_seconds, settings.fails) == ("10.0.0.5", 7000, 5_000_000, 180, True)
    assert settings.consumes
    assert not settings.produces
    assert EngineConfig("m").kv_transfer is None


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"kv_role": "kv_maybe"}, "kv_role must be one of kv_producer, kv_consumer, kv_both"),
        ({"kv_role": None}, "kv_role must be"),
        ({"kv_connector": None}, "kv_connector must be"),
        ({"kv_port": 70000}, "kv_port must be a whole number from 0 to 65535"),
        ({"kv_port": "80"}, "kv_port must be"),
        ({"kv_port": True}, "kv_port must be"),
        ({"kv_ip": "0.0.0.0"}, "no address under which another host reaches"),
        ({"kv_ip": "::"}, "no address under which another host reaches"),
        ({"kv_buffer_size": float("nan")}, "kv_buffer_size must be"),
        ({"kv_load_failure_policy": "hope"}, "one of recompute, fail"),
        ({"kv_connector_extra_config": {"backends": []}}, "no field kv_connector_extra_config.'backends'"),
        ({"kv_connector_extra_config": [1]}, "must be an object"),
        ({"shared_key": "x"}, "there is no field 'shared_key'"),
        ({"engine_id": ""}, "engine_id must be"),
    ],
)
def test_what_makes_no_sense_is_refused(change: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match="kv_transfer_config") as failed:
        EngineConfig("m", kv_transfer_config={**PLAIN, **change})
    assert message in failed.value.message


@pytest.mark.parametrize(
    ("transfer", "config"),
    [
        ({"kv_connector": "LMCacheConnectorV1"}, {}),
        ({"kv_buffer_device": "cuda"}, {}),
        ({}, {"enable_sleep_mode": True}),
        ({}, {"tensor_parallel_size": 2}),
        ({}, {"pipeline_parallel_size": 2}),
    ],
)
def test_what_does_not_exist_is_said_to(transfer: dict[str, Any], config: dict[str, Any]) -> None:
    with pytest.raises(NotBuiltError, match="not built"):
        EngineConfig("m", kv_transfer_config={**PLAIN, **transfer}, **config)


def test_the_prefix_cache_is_needed() -> None:
    with pytest.raises(ConfigError, match="needs the prefix cache"):
        EngineConfig("m", kv_transfer_config=PLAIN, enable_prefix_caching=False)


def test_params_as_proxies_write_them() -> None:
    nothing = {"do_remote_decode": False, "do_remote_prefill": False, "remote_engine_id": None, "remote_host": None, "remote_port": None}
    assert transfer_params(None) is None
    assert transfer_params({}) is None
    assert transfer_params(nothing) is None
    assert transfer_params({**nothing, "do_remote_decode": True}) == TransferParams(True, None)
    assert transfer_params({**SOURCE, "remote_block_ids": [[1]], "tp_size": 1}) == TransferParams(False, RemotePrefill("h", 5, "e", "r"))
    assert transfer_params({**SOURCE, "remote_port": "5600"}) == TransferParams(False, RemotePrefill("h", 5600, "e", "r"))


@pytest.mark.parametrize(
    "change",
    [
        {"do_remote_decode": True}, {"do_remote_prefill": "yes"}, {"remote_host": None}, {"remote_host": "h" * 300}, {"remote_port": 0},
        {"remote_port": "65536"}, {"remote_port": "٣"}, {"remote_port": 2.5}, {"remote_engine_id": 7}, {"remote_request_id": ""},
    ],
)  # fmt: skip
def test_params_that_are_wrong(change: dict[str, Any]) -> None:
    with pytest.raises(RequestError, match="kv_transfer_params") as failed:
        transfer_params({**SOURCE, **change})
    assert failed.value.param == "kv_transfer_params"
