"""What several rules of this room ask: how many GPUs there are, how the model is split, on which node a line was printed."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from headway.doctor.case import Case
from headway.doctor.evidence.log.line import Line
from headway.doctor.facts.fact import Fact

_VISIBLE: Final = ("CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "NVIDIA_VISIBLE_DEVICES")
_IP: Final = re.compile(r"\bip=(?P<ip>\d{1,3}(?:\.\d{1,3}){3})")


@dataclass(frozen=True, slots=True)
class Split:
    """Tensor, pipeline and data parallel sizes as given; 1 when not given."""

    tensor: int
    pipeline: int

    @property
    def world(self) -> int:
        return self.tensor * self.pipeline


def split_of(case: Case) -> Split:
    """Of the launch: flags, or what the engine says it uses."""
    tensor = case.launch.number("tensor_parallel_size") or case.launch.number("tp_size") or 1
    pipeline = case.launch.number("pipeline_parallel_size") or case.launch.number("pp_size") or 1
    return Split(max(1, int(tensor)), max(1, int(pipeline)))


def gpus_on_host(case: Case) -> int | None:
    """GPUs that the context lists for this host, None when it lists none."""
    listed = case.context.get("host.gpus")
    return len(listed) if isinstance(listed, list) else None


def visibility(case: Case) -> Fact[int] | None:
    """How many GPUs `CUDA_VISIBLE_DEVICES` or a variable like it leaves, None when none is set."""
    for name in _VISIBLE:
        value = case.context.get(f"env.{name}")
        if value is not None and str(value).lower() not in ("all", "void", "none"):
            count = len([index for index in str(value).split(",") if index.strip() not in ("", "-1")])
            return Fact(count, case.context.quote(f"env.{name}", f"{name}={value}"))
    return None


def visible_gpus(case: Case) -> int | None:
    """`visibility` without its place."""
    found = visibility(case)
    return found.value if found else None


def divisors(number: int, at_most: int) -> list[int]:
    """Largest first."""
    return [size for size in range(min(number, at_most), 0, -1) if number % size == 0]


def node_of(line: Line) -> str:
    """The node that printed a line: `ip=` of a Ray worker, or the name in front of it (`node-2 | ...`); "" if unknown."""
    found = _IP.search(line.process) or _IP.search(line.text)
    return found["ip"] if found else line.container


def serve_command(case: Case, flags: str) -> str:
    """`vllm serve MODEL` with these flags; the flags alone when the model is not known."""
    model = case.launch.model
    return f"vllm serve {model} {flags}" if model else flags


def in_kubernetes(case: Case) -> bool:
    return (
        case.context.has("env.KUBERNETES_SERVICE_HOST") or "kubernetes" in case.context.text("command").lower() or "k8s" in case.context.text("command").lower()
    )
