"""--lora-modules: what it says, and when the routes are there."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import pytest

from headway.cli.serve_config import serve_config
from headway.engine.config import EngineConfig
from headway.errors import ConfigError
from headway.server.lora.adapter_modules import AdapterModule, adapter_modules
from tests.server.api import Api

CONFIG = EngineConfig("m", enable_lora=True, served_model_name=("base", "other"))


def test_both_forms() -> None:
    words = ["a=/x=y", '{"name": "b", "path": "/z", "base_model_name": "base"}']
    assert adapter_modules(words, CONFIG) == [AdapterModule("a", "/x=y"), AdapterModule("b", "/z", "base")]
    config = serve_config(["m", "--enable-lora", "--lora-modules", *words, "--max-loras", "2"], {}, print)
    assert (config.server.lora_modules, config.engine.enable_lora, config.engine.max_loras) == (tuple(words), True, 2)


@pytest.mark.parametrize(
    ("word", "said"),
    [("a", "name=path"), ("=x", "name=path"), ("{", "not JSON"), ('{"name": "a"}', "a text as path"), ('{"name": "a", "path": 3}', "a text as path"),
     ('{"name": "a", "path": "x", "rank": 4}', "'rank'"), ('{"name": "a", "path": "x", "base_model_name": "gpt"}', "this server has m, base, other"),
     ("base=x", "'base' is taken")],
)  # fmt: skip
def test_what_names_no_adapter(word: str, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        adapter_modules([word], CONFIG)


def test_twice_and_without_the_flag() -> None:
    with pytest.raises(ConfigError, match="'a' is taken"):
        adapter_modules(["a=x", "a=y"], CONFIG)
    with pytest.raises(ConfigError, match="needs --enable-lora"):
        adapter_modules(["a=x"], EngineConfig("m"))


def test_the_environment() -> None:
    found = serve_config(["m"], {"VLLM_ALLOW_RUNTIME_LORA_UPDATING": "1", "HEADWAY_LORA_FOLDERS": f"/a{os.pathsep}/b"}, print).server
    assert (found.allow_runtime_lora_updating, found.lora_folders) == (True, ("/a", "/b"))
    assert not serve_config(["m"], {"VLLM_ALLOW_RUNTIME_LORA_UPDATING": "0"}, print).server.allow_runtime_lora_updating


@pytest.mark.parametrize("path", ["/v1/load_lora_adapter", "/v1/unload_lora_adapter"])
def test_routes_are_there_when_the_operator_wants_them(make_api: Callable[..., Api], path: str) -> None:
    body: dict[str, Any] = {"lora_name": "a", "lora_path": "/x"}
    refused = make_api().post(path, body)
    assert (refused.status_code, refused.json()["error"]["reason"]) == (404, "route_not_found")
    allowed = make_api(allow_runtime_lora_updating=True).post(path, body)
    assert allowed.json()["error"]["reason"] != "route_not_found"
