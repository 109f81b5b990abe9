"""Launch files as people keep them: what is started, with which variables, under which limits."""

from __future__ import annotations

from typing import Any

import pytest

from headway.doctor.collect.launch_files import Launched, launched_by
from headway.errors import DoctorError


def test_a_shell_line_with_variables_before_it() -> None:
    found = launched_by("HF_HUB_OFFLINE=1 VLLM_LOGGING_LEVEL=DEBUG vllm serve org/model --max-model-len 4096 # fast\n")
    assert found.command == "vllm serve org/model --max-model-len 4096"
    assert found.env == {"HF_HUB_OFFLINE": "1", "VLLM_LOGGING_LEVEL": "DEBUG"}
    assert found.words[:3] == ("vllm", "serve", "org/model")


def test_a_script_with_continued_lines_and_exports() -> None:
    text = '#!/bin/bash\nset -e\nexport NCCL_DEBUG="INFO"\npip install vllm\nexec numactl --membind 0 \\\n  vllm serve org/model \\\n  --port 9000\n'
    found = launched_by(text)
    assert found.words == ("vllm", "serve", "org/model", "--port", "9000")
    assert found.env == {"NCCL_DEBUG": "INFO"}


@pytest.mark.parametrize(
    "line",
    [
        "python -m vllm.entrypoints.openai.api_server --model org/model",
        "python3.11 -u -m vllm.entrypoints.openai.api_server --model org/model",
        "sudo -E env A=1 nohup llama-server -m /models/x.gguf -c 4096",
        "uv run headway serve smollm2-135m-instruct",
        "python -m sglang.launch_server --model-path org/model",
        "trtllm-serve org/model",
        "bash -lc 'cd /srv && source env/bin/activate\nexport A=1\nvllm serve org/model'",
    ],
)
def test_lines_that_start_a_server(line: str) -> None:
    assert launched_by(line).words


@pytest.mark.parametrize("text", ["", "pip install vllm", "# vllm serve org/model", "vllm bench serve", "echo hello\nls", "vllm --version", "services: [", "kind: Service\nspec: {}\n"])
def test_a_text_without_a_server_is_refused(text: str) -> None:
    with pytest.raises(DoctorError, match="no model server is started") as caught:
        launched_by(text)
    assert caught.value.reason == "launch_unknown"


def test_docker_run() -> None:
    found = launched_by(
        "docker run --rm -it --gpus all -p 8000:8000 --shm-size=1g --memory 24g --cpus 2.5 -e HF_TOKEN=abc -e INHERITED \\\n"
        "  vllm/vllm-openai:latest --model org/model --tensor-parallel-size 2\n"
    )
    assert found.command.startswith("docker run")
    assert found.words == ("vllm", "serve", "--model", "org/model", "--tensor-parallel-size", "2")
    assert found.env == {"HF_TOKEN": "abc"}
    assert found.host == {"in_container": True, "shm_mib": 1024.0, "cgroup": {"memory_max_gib": 24.0, "cpu_max": "250000 100000"}}


def test_docker_without_shared_memory_has_64_mib_unless_the_hosts_is_used() -> None:
    assert launched_by("docker run vllm/vllm-openai --model m").host["shm_mib"] == 64
    assert "shm_mib" not in launched_by("docker run --ipc=host vllm/vllm-openai --model m").host


def test_docker_of_another_image_is_no_server() -> None:
    with pytest.raises(DoctorError):
        launched_by("docker run -d prom/prometheus --config.file=/etc/vllm.yml")


def test_llama_in_docker() -> None:
    assert launched_by("docker run ghcr.io/ggml-org/llama.cpp:server -m /m.gguf -c 8192").words == ("llama-server", "-m", "/m.gguf", "-c", "8192")


COMPOSE = """
services:
  proxy: {image: nginx}
  llm:
    image: vllm/vllm-openai:v0.11.0
    %s
"""


@pytest.mark.parametrize(
    ("members", "words"),
    [
        ("command: --model org/model --port 9000", ("vllm", "serve", "--model", "org/model", "--port", "9000")),
        ("command: [--model, org/model, --port, 9000]", ("vllm", "serve", "--model", "org/model", "--port", "9000")),
        ("command: >\n      vllm serve org/model\n      --port 9000", ("vllm", "serve", "org/model", "--port", "9000")),
        ("entrypoint: [vllm, serve]\n    command: org/model", ("vllm", "serve", "org/model")),
        ("entrypoint: ['/bin/sh', '-c']\n    command: ['vllm serve org/model']", ("vllm", "serve", "org/model")),
    ],
)
def test_compose_commands(members: str, words: tuple[str, ...]) -> None:
    assert launched_by(COMPOSE % members).words == words


@pytest.mark.parametrize("environment", ["{A: 1, B: two}", "[A=1, B=two]"])
def test_compose_environment(environment: str) -> None:
    assert launched_by(COMPOSE % f"environment: {environment}").env == {"A": "1", "B": "two"}


def host_of(members: str) -> dict[str, Any]:
    return dict(launched_by(COMPOSE % members).host)


def test_compose_limits() -> None:
    deploy = host_of("deploy: {resources: {limits: {memory: 8g, cpus: '0.5'}}}")
    assert deploy["cgroup"] == {"memory_max_gib": 8.0, "cpu_max": "50000 100000"}
    assert host_of("mem_limit: 512m")["cgroup"] == {"memory_max_gib": 0.5}
    assert deploy["shm_mib"] == 64
    assert host_of("shm_size: 2gb")["shm_mib"] == 2048.0
    assert "shm_mib" not in host_of("ipc: host")


def test_a_compose_service_is_not_in_a_cluster() -> None:
    assert not launched_by(COMPOSE % "command: --model m").in_a_cluster


def manifest(kind: str, container: str, volumes: str = "") -> Launched:
    pod = f"spec:\n  containers:\n  - name: llm\n    image: vllm/vllm-openai\n{container}{volumes}"
    if kind != "Pod":
        pod = "spec:\n  template:\n" + "".join(f"    {line}\n" for line in pod.splitlines())
    return launched_by(f"apiVersion: v1\nkind: Service\nmetadata: {{name: x}}\n---\napiVersion: apps/v1\nkind: {kind}\n{pod}")


@pytest.mark.parametrize("kind", ["Deployment", "StatefulSet", "Pod"])
def test_kubernetes(kind: str) -> None:
    container = (
        "    command: [vllm, serve]\n    args: [org/model, --max-model-len, '8192']\n"
        "    resources: {limits: {memory: 16Gi, cpu: 500m, nvidia.com/gpu: 1}}\n"
        "    env: [{name: A, value: '1'}, {name: HF_TOKEN, valueFrom: {secretKeyRef: {name: s, key: t}}}]\n"
    )
    found = manifest(kind, container)
    assert found.words == ("vllm", "serve", "org/model", "--max-model-len", "8192")
    assert found.env == {"A": "1", "HF_TOKEN": ""}
    assert found.host == {"in_container": True, "cgroup": {"memory_max_gib": 16.0, "cpu_max": "50000 100000"}, "shm_mib": 64}
    assert found.in_a_cluster


def test_kubernetes_with_a_volume_at_dev_shm() -> None:
    mounts = "    volumeMounts: [{name: shm, mountPath: /dev/shm}]\n"
    found = manifest("Pod", mounts, "  volumes: [{name: shm, emptyDir: {medium: Memory}}]\n")
    assert "shm_mib" not in found.host


def test_kubernetes_through_a_shell() -> None:
    found = manifest("Deployment", "    command: [/bin/sh, -c]\n    args: ['A=2 vllm serve org/model --port 9']\n    env: [{name: A, value: '1'}, {name: B, value: x}]\n")
    assert found.words == ("vllm", "serve", "org/model", "--port", "9")
    assert found.env == {"A": "2", "B": "x"}


def test_a_systemd_unit() -> None:
    found = launched_by(
        "[Service]\nEnvironment=VLLM_CPU_KVCACHE_SPACE=4\nExecStart=/opt/venv/bin/vllm serve org/model \\\n    --port 9000\nMemoryMax=8G\nCPUQuota=150%\nRestart=always\n"
    )
    assert found.words == ("/opt/venv/bin/vllm", "serve", "org/model", "--port", "9000")
    assert found.env == {"VLLM_CPU_KVCACHE_SPACE": "4"}
    assert found.host == {"cgroup": {"memory_max_gib": 8.0, "cpu_max": "150000 100000"}}


@pytest.mark.parametrize("text", ["services: {llm: 3}", "services: []", "kind: Pod\nspec: {containers: [7, {image: 3, command: {a: 1}}]}"])
def test_odd_forms_are_refused_as_any_other(text: str) -> None:
    with pytest.raises(DoctorError) as caught:
        launched_by(text)
    assert caught.value.reason == "launch_unknown"


def test_words_with_an_open_quote_are_split_at_spaces() -> None:
    assert launched_by('services: {a: {image: vllm/vllm-openai, command: "--model it\'s"}}').words == ("vllm", "serve", "--model", "it's")
