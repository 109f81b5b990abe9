"""`headway plan MODEL --cluster FILE`: what each way to split the model over the cluster reaches, as one JSON-ready object."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from headway.artifacts.bounded_json import read_json_object
from headway.artifacts.foreign_file import regular_file_size
from headway.capacity.cluster.choice import Demand, Reached, all_reached, recommended
from headway.capacity.cluster.description import Cluster, cluster_of
from headway.capacity.cluster.step_cost import Replica, StepCost
from headway.capacity.model_shape import ModelShape
from headway.capacity.on_device import CACHE_DTYPES, UTILIZATION, Placement
from headway.capacity.on_host import DTYPE_BYTES
from headway.capacity.quantization_table import quantizations
from headway.cli.plan_figures import model_figures
from headway.cli.plan_source import plan_source
from headway.errors import ConfigError

_MOST_BYTES: Final = 1 << 20
_MOST_TOKENS: Final = 1 << 24


def cluster_answer(model: str | None, params: str | None, path: str, options: Mapping[str, Any], input_len: int | None, output_len: int | None,
                   ttft_ms: float | None, itl_ms: float | None, save_step_times: str | None) -> dict[str, Any]:  # fmt: skip
    """`options`: the other options of the command, of which most belong to other questions. Raises ConfigError, ArtifactError, NotBuiltError."""
    if model is None and params is None:
        raise ConfigError("give MODEL, or --params: --cluster plans for one model", param="model")
    demand = _demand(input_len, output_len, ttft_ms, itl_ms)
    placement = _placement(options)
    shape = plan_source(model, params).shape
    if shape.kind != "decoder":
        raise ConfigError(f"{shape.name} is no language model: a cluster plan is for those", param="model")
    cluster = _read(Path(path).expanduser())
    found = all_reached(shape, cluster, placement, demand)
    best = recommended(found)
    saved = None
    if save_step_times is not None and best is not None:
        saved = next((each for each in found if each.obstacle is None and each.layout.pp == 1), best)
        _save(Replica(shape, cluster, saved.layout, placement), saved, Path(save_step_times))
    return {
        "model": model_figures(shape),
        "cluster": _cluster_figures(cluster),
        "demand": {"prompt_tokens": demand.prompt, "output_tokens": demand.output, "ttft_ms": ttft_ms, "itl_ms": itl_ms},
        "fits": best is not None,
        "verdict": _verdict(shape, found, best),
        "recommended": None if best is None else _figures(best, terms=True),
        "command": None if best is None else _command(shape, best, placement, demand, cluster),
        "step_times": None if saved is None else {"file": save_step_times, "tensor_parallel_size": saved.layout.tp},
        "layouts": [_figures(each, terms=False) for each in found],
        "notes": _notes(shape, cluster),
    }


def _demand(prompt: int | None, output: int | None, ttft: float | None, itl: float | None) -> Demand:
    lengths = {"input_len": 1024 if prompt is None else prompt, "output_len": 256 if output is None else output}
    for name, tokens in lengths.items():
        if not 1 <= tokens <= _MOST_TOKENS:
            raise ConfigError(f"--{name.replace('_', '-')} must be from 1 to {_MOST_TOKENS:,}, found {tokens}", param=name)
    for name, limit in (("ttft_ms", ttft), ("itl_ms", itl)):
        if limit is not None and not 0 < limit < float("inf"):
            raise ConfigError(f"--{name.replace('_', '-')} must be over 0, found {limit}", param=name)
    return Demand(lengths["input_len"], lengths["output_len"], None if ttft is None else ttft / 1e3, None if itl is None else itl / 1e3)


def _placement(options: Mapping[str, Any]) -> Placement:
    used = {"dtype", "kv_cache_dtype", "quantization", "gpu_memory_utilization"}
    for name, value in options.items():
        if name not in used and value is not None:
            flag = name if name.startswith("--") else f"--{name.replace('_', '-')}"
            raise ConfigError(f"{flag} does not go with --cluster", param="cluster", fix="Devices, speeds and links stand in the file.")
    utilization = options["gpu_memory_utilization"]
    if utilization is not None and not 0 < utilization <= 1:
        raise ConfigError(f"--gpu-memory-utilization must be over 0 and at most 1, found {utilization}", param="gpu_memory_utilization")
    name = options["quantization"]
    form = None if name is None else quantizations().get(name)
    if name is not None and form is None:
        raise ConfigError(f"--quantization {name!r:.40}: known are {', '.join(quantizations())}", param="quantization")
    width = DTYPE_BYTES.get(options["dtype"], 2)
    cache = float(width) if options["kv_cache_dtype"] == "auto" else CACHE_DTYPES[options["kv_cache_dtype"]]
    return Placement(form, utilization or UTILIZATION, 1, cache, width)


def _read(path: Path) -> Cluster:
    """Paths in the description are relative to it."""

    def read_json(name: str) -> Mapping[str, Any]:
        return read_json_object(path.parent / name)

    if path.suffix == ".json":
        return cluster_of(read_json_object(path), read_json)
    if (size := regular_file_size(path, "a description of a cluster")) > _MOST_BYTES:
        raise ConfigError(f"{path} has {size:,} bytes, the limit is {_MOST_BYTES:,}", reason="cluster_invalid", param="cluster")
    try:
        described = tomllib.loads(path.read_text(encoding="utf-8"))
    except (UnicodeDecodeError, tomllib.TOMLDecodeError, RecursionError) as error:
        raise ConfigError(f"{path} is not TOML: {str(error)[:120]}", reason="cluster_invalid", param="cluster") from None
    return cluster_of(described, read_json)


def _cluster_figures(cluster: Cluster) -> dict[str, Any]:
    device = cluster.device
    links = {"link": cluster.inside, "network": cluster.network}
    return {
        "nodes": cluster.nodes, "devices_per_node": cluster.devices, "device": device.title, "memory_bytes": device.memory, "bandwidth": device.bandwidth,
        "flops": device.flops, "step_overhead_seconds": device.overhead, "origin": device.origin,
        **{name: {"latency_seconds": link.latency, "bandwidth": link.bandwidth, "all_reduce": link.all_reduce, "origin": link.origin} for name, link in links.items()},
    }  # fmt: skip


def _figures(each: Reached, *, terms: bool) -> dict[str, Any]:
    figures: dict[str, Any] = {
        "tensor_parallel_size": each.layout.tp, "pipeline_parallel_size": each.layout.pp, "data_parallel_size": each.layout.dp,
        "runs": each.obstacle is None, "obstacle": each.obstacle, "weights_bytes_per_device": each.memory.weights,
        "cache_bytes_per_sequence_and_device": each.memory.sequence, "budget_bytes": each.memory.budget,
    }  # fmt: skip
    if each.obstacle is None:
        figures |= {
            "batch": each.batch, "sequences_per_replica": each.batch * each.layout.pp, "limited_by": each.limited_by, "ttft_seconds": each.ttft,
            "itl_seconds": each.itl, "requests_per_second": each.requests_per_second, "output_tokens_per_second": each.output_tokens_per_second,
            "bubble": each.bubble, "prompt_chunks": each.chunks,
        }  # fmt: skip
    if terms:
        figures |= {"decode_step": _terms(each.decode), "prompt_step": _terms(each.prefill)}
    return figures


def _terms(cost: StepCost | None) -> dict[str, Any]:
    assert cost is not None
    return {"seconds": cost.seconds, "terms": [{"name": t.name, "arithmetic": t.arithmetic, "seconds": t.seconds, "counted": t.counted} for t in cost.terms]}


def _verdict(shape: ModelShape, found: list[Reached], best: Reached | None) -> str:
    if best is None:
        return f"No layout of {len(found)} serves {shape.name} as asked; the reasons are below."
    layout = best.layout
    return (
        f"{shape.name}: tensor parallel {layout.tp}, pipeline parallel {layout.pp}, {layout.dp} replicas reach {best.output_tokens_per_second:,.0f} output tokens/s,"
        f" first token after {best.ttft * 1e3:,.0f} ms, {best.itl * 1e3:,.1f} ms between tokens."
    )


def _command(shape: ModelShape, best: Reached, placement: Placement, demand: Demand, cluster: Cluster) -> str:
    layout = best.layout
    words = [
        "headway serve MODEL", f"-tp {layout.tp}" if layout.tp > 1 else "", f"-pp {layout.pp}" if layout.pp > 1 else "",
        f"--max-model-len {demand.prompt + demand.output}", f"--max-num-seqs {best.batch * layout.pp}",
        f"--nnodes {-(-layout.tp * layout.pp // cluster.devices)}" if layout.tp * layout.pp > cluster.devices else "",
    ]  # fmt: skip
    return " ".join(word for word in words if word)


def _notes(shape: ModelShape, cluster: Cluster) -> list[str]:
    notes = list(shape.notes)
    if cluster.device.ceiling:
        notes.append("The device's figures are those of its data sheet, so the plan is a ceiling; node.bandwidth_share and node.flops_share lower them.")
    if shape.active < 0.7 * (shape.parameters - shape.embeddings):
        notes.append("Of experts, only as many are read as one token needs: a batch reads more, so its steps take longer than reckoned.")
    if cluster.device.overhead == 0:
        notes.append("Nothing is reckoned for launches and scheduling; node.step_overhead_us adds it to every step.")
    return notes


def _save(replica: Replica, best: Reached, path: Path) -> None:
    from headway.bench.simulation.reckoned_times import reckoned_times
    from headway.bench.simulation.step_times import save_step_times

    save_step_times(reckoned_times(replica, best), path)
