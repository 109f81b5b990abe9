"""A secret that somebody wrote into a log, a command, an environment or a configuration never comes out."""

from __future__ import annotations

import base64
import re
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from headway.doctor.evidence.context import masked
from headway.doctor.evidence.masking import mask, names_a_secret
from headway.doctor.examine import examine
from headway.doctor.report.on_screen import show
from tests.doctor.judging import Material, report_on

# Every form, with the place of the secret.
FORMS = (
    "OPENAI_API_KEY={}",
    "export HF_TOKEN='{}'",
    "AWS_SECRET_ACCESS_KEY={} AWS_REGION=eu",
    "vllm serve m --api-key {} --port 8000",
    "vllm serve m --api-key first-key {} --port 8000",
    "vllm serve m --api-key={}",
    "argv: ['vllm', 'serve', 'm', '--api-key', '{}', '--port', '1']",
    "non-default args: {{'model': 'm', 'api_key': ['{}', 'other'], 'port': 1}}",
    "Authorization: Bearer {}",
    "curl -H 'Authorization: Basic {}' http://x",
    '{{"headers": {{"authorization": "Bearer {}", "x-api-key": "abc"}}}}',
    "X-API-Key: {}",
    "Cookie: session={}; theme=dark",
    "Set-Cookie: id={}; Path=/",
    "http://user:{}@10.0.0.5/v1",
    "redis://:{}@cache:6379/0",
    "curl -u admin:{} http://x",
    "GET /v1/models?api_key={}&n=1",
    "api_key: {}",
    "api_key: >-\n  {}\n  and-the-rest\nport: 1",
    'password: "{}"',
    "clientSecret: {}",
    '\\"token\\": \\"{}\\"',
    "apiVersion: v1\nkind: Secret\ndata:\n  anything: {}\n",
    "-----BEGIN PRIVATE KEY-----\n{}\n-----END PRIVATE KEY-----",
)
SHAPES = ("sk-{}", "sk-ant-api03-{}", "hf_{}", "ghp_{}", "github_pat_{}", "glpat-{}", "nvapi-{}", "gsk_{}", "AKIA{}", "xoxb-{}", "AIza{}")
SECRETS = st.text("abcdefghijkmnopqrstuvwxyzABCDEFGHJKLMNPQRSTUVWXYZ23456789", min_size=24, max_size=40).filter(lambda text: not text.isdigit())


@given(secret=SECRETS)
@pytest.mark.parametrize("form", FORMS)
def test_by_the_name_before_it(form: str, secret: str) -> None:
    assert secret not in mask(form.format(secret))


@given(tail=st.text("ABCDEFGHJKLMNPQRSTUVWXYZ23456789", min_size=32, max_size=40))
@pytest.mark.parametrize("shape", SHAPES)
def test_by_its_shape(shape: str, tail: str) -> None:
    secret = shape.format(tail)
    assert tail not in mask(f"the answer was {secret}, so what")
    assert tail not in mask(f"({secret})")


@pytest.mark.parametrize("key", ["sk-TESTONLY0123456789abcdef", "hf_TESTONLYabcdefghijklmn", "ghp_TESTONLYabcdefghijklmn", "AKIATESTONLYABCDEFGH"])
def test_in_base64(key: str) -> None:
    packed = base64.b64encode(key.encode()).decode()
    assert packed[:20] not in mask(f"data: {{hub: {packed}}}")


@pytest.mark.parametrize(
    "text",
    [
        "eos_token: </s>, bos_token='<s>', pad_token_id=0",
        "max_num_batched_tokens=8192, tokenizer='Qwen/Qwen2.5-7B', tokenizer_mode=auto",
        "num_key_value_heads: 8, key_cache: float16",
        "Avg prompt throughput: 12.0 tokens/s, 3 tokens generated",
        "KeyError: 'layers.0.attention.wk.weight'",
        "HF_TOKEN=$HF_TOKEN hf auth login --token <your token>",
        "api_key=None, token: null, VLLM_API_KEY is set, password: ***",
        "user@example.com wrote",
        "Process 4242 has 14.10 GiB memory in use, 3 passed, passthrough=on",
    ],
)
def test_ordinary_words_stay(text: str) -> None:
    assert mask(text) == text


def test_context_members() -> None:
    given = {
        "env": {"HF_TOKEN": "s3cr3t-a", "VLLM_PORT": "tcp://10.0.0.1:8000"},
        "argv": ["vllm", "--api-key", "s3cr3t-b", "s3cr3t-c", "--port", "8000"],
        "containers": [{"env": [{"name": "API_TOKEN", "value": "s3cr3t-d"}, {"name": "MODE", "value": "fast"}]}],
        "config": {"apiKey": "s3cr3t-e", "eos_token": "</s>", "auth": {"Authorization": "s3cr3t-f"}},
        "files": {"config.yaml": "providers:\n- api_key: s3cr3t-g\n  url: http://x\n", "secret.yaml": "kind: Secret\ndata:\n  a: s3cr3t-h\n"},
        "manifest": {"kind": "Secret", "data": {"a": "s3cr3t-i"}},
        "keys": {"api_keys": ["s3cr3t-j", "s3cr3t-k"]},
        "command": "curl http://u:s3cr3t-l@h/ -H 'Cookie: a=s3cr3t-m'",
    }
    safe = masked(given)
    assert "s3cr3t" not in str(safe)
    assert safe["argv"][-2:] == ["--port", "8000"]
    assert safe["env"]["VLLM_PORT"] == "tcp://10.0.0.1:8000"
    assert safe["config"]["eos_token"] == "</s>"
    assert safe["containers"][0]["env"][1]["value"] == "fast"


def test_names() -> None:
    assert all(map(names_a_secret, ("api_key", "HF_TOKEN", "apiKey", "x-api-key", "AWS_SECRET_ACCESS_KEY", "db.password", "Authorization")))
    assert not any(map(names_a_secret, ("eos_token", "max_tokens", "num_key_value_heads", "tokenizer", "keys", "secretName", "key")))


_CASE = """\
(APIServer pid=6) INFO 11-29 09:14:03 [utils.py:264] non-default args: {{'model': 'm', 'api_key': ['{0}'], 'port': 8000}}
argv: vllm serve m --api-key {0} --port 8000
(EngineCore pid=7) ERROR 11-29 09:14:03 [core.py:93] OSError: http://user:{0}@host/ said Authorization: Bearer {0}
(EngineCore pid=7) torch.OutOfMemoryError: CUDA out of memory (token={0}) Tried to allocate 80.00 MiB. GPU 0 has a total capacity of 23.57 GiB of which 60.69 MiB is free. Process 4242 has 14.10 GiB memory in use. Including non-PyTorch memory, this process has 9.37 GiB memory in use.
{{"level": "error", "msg": "model runtime is not ready: model m failed to load: ResolutionError: a revision is required: a/b (Authorization: Bearer {0})", "deployment": "m"}}
"""


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize("secret", ["hunter2-very-private", "sk-TESTONLY0123456789abcdef", "hf_TESTONLYabcdefghijklmn"])
def test_no_report_holds_a_planted_secret(secret: str, language: str, tmp_path: Path) -> None:
    context = yaml.safe_dump({"command": f"vllm serve m --api-key {secret}", "env": {"HF_TOKEN": secret, "X": f"http://u:{secret}@h"}, "said": f"api_key={secret}"})
    material = Material(_CASE.format(secret).encode(), context.encode())
    output = report_on(material, tmp_path, language)  # type: ignore[arg-type]
    assert secret not in output
    assert '"findings": []' not in output
    console = Console(record=True, width=200, file=(tmp_path / "screen").open("w"))
    show(examine([tmp_path / "log.txt"], tmp_path / "context.yaml").report, console, language)  # type: ignore[arg-type]
    assert secret not in re.sub(r"\s", "", console.export_text())
