"""Other names: models, hosts, addresses, processes, ports, folders, versions, places in sources, dates."""

from __future__ import annotations

import re
from random import Random

from tests.doctor.judging import Known
from tests.doctor.rewriting.swaps import swapped

_FAMILIES = {
    "Qwen/Qwen2.5": ("mirrors/Qwen2.5", "acme-lab/Larch-1.5", "Qwen/Qwen2.5"),
    "Qwen/Qwen3": ("acme-lab/Larch-4", "Qwen/Qwen3"),
    "meta-llama/Llama-3.1": ("tundra/Tern-2.6", "meta-llama/Llama-3.1"),
    "meta-lama/Llama-3.1": ("tunda/Tern-2.6", "meta-lama/Llama-3.1"),
    "mistralai/Mistral-7B": ("mistralai/Mistral-7B", "heronai/Heron-7B"),
    "/models/": ("/data/llm/", "/mnt/weights/", "/models/"),
    "/srv/models/": ("/opt/checkpoints/", "/srv/models/"),
    "/gguf/": ("/var/lib/gguf/", "/gguf/"),
    "/usr/local/lib/python3.12/site-packages/": ("/opt/venv/lib/python3.11/site-packages/", "/home/ml/.venv/lib/python3.10/site-packages/"),
    "vela-domain": ("topic-model", "vela-domain"),
    "jupyter-lab": ("code-server", "jupyter-lab"),
}
_SHARED_WITH = {"Qwen/Qwen2.5": "meta", "meta-llama/Llama-3.1": "llama", "meta-lama/Llama-3.1": "llama"}
_VERSIONS = ("0.27.1", "0.29.3", "0.30.0", "0.31.2", "0.33.0")
_ADDRESS = re.compile(r"(?<![\d.])(?:10|172|192)\.\d{1,3}\.\d{1,3}\.\d{1,3}(?![\d.])")
_PID = re.compile(r"(?:pid=|pid: ?|\"pid\": |Process |ppid: )(\d{3,6})\b")
_PORTS = ("8000", "8100", "29500")


def renamed(known: Known, random: Random) -> Known:
    text = known.material.log.decode("utf-8") + (known.material.context or b"").decode("utf-8")
    swaps = _families(random)
    swaps |= {address: _address(address, random) for address in sorted(set(_ADDRESS.findall(text)))}
    swaps |= dict(zip(pids := sorted(set(_PID.findall(text))), map(str, random.sample(range(100_000, 990_000), len(pids))), strict=True))
    if known.name not in _PORT_IS_MEANT:
        swaps |= {port: str(random.randrange(int(port) + 10, int(port) + 90)) for port in _PORTS}
    swaps["0.32.0"] = random.choice(_VERSIONS)
    return _places(swapped(known, swaps), random)


# a default port is what the case is about
_PORT_IS_MEANT = {"distributed-08"}


def _families(random: Random) -> dict[str, str]:
    swaps: dict[str, str] = {}
    drawn: dict[str, int] = {}
    for name, others in _FAMILIES.items():
        group = _SHARED_WITH.get(name, name)
        drawn.setdefault(group, random.randrange(len(others)))
        swaps[name] = others[drawn[group]]
    return swaps


def _address(address: str, random: Random) -> str:
    head = address.split(".")[0]
    rest = (random.randrange(16, 31), random.randrange(1, 250), random.randrange(2, 250)) if head == "172" else None
    if head == "192":
        rest = (168, random.randrange(1, 250), random.randrange(2, 250))
    return ".".join(map(str, (head, *(rest or (random.randrange(1, 250), random.randrange(1, 250), random.randrange(2, 250))))))


def _places(known: Known, random: Random) -> Known:
    """Other line numbers in sources, another day and hour."""
    day, hours = f"{random.randrange(1, 13):02}-{random.randrange(1, 29):02}", random.randrange(-2, 9)
    text = known.material.log.decode("utf-8")
    text = re.sub(r"(?<=\.py:)\d+(?=\])", lambda _: str(random.randrange(40, 4000)), text)
    text = re.sub(r"(?<=\", line )\d+(?=, in )", lambda _: str(random.randrange(40, 4000)), text)
    text = text.replace("11-29", day).replace("1129", day.replace("-", ""))
    text = re.sub(r"(?<![\d:])(\d\d)(?=:\d\d:\d\d)(?!:\d\d:\d\d:)", lambda found: f"{(int(found[1]) + hours) % 24:02}", text)
    return Known(known.name, known.material.__class__(text.encode(), known.material.context), known.expectation)
