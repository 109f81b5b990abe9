"""A bare text decoder of transformers with the weights of a package: for architectures that Headway does not run itself.

Weights go into a model that was built without storage, so that nothing is initialised with random numbers first and what
is missing or left over is an error.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import torch

from headway.errors import PackageError
from headway.runtime.readers.package_tensors import PackageTensors

# model_type -> class of transformers. Gated DeltaNet layers need torch with LAPACK on a CPU (triangular solves).
CLASSES: Final[dict[str, str]] = {"qwen2": "Qwen2Model", "qwen3": "Qwen3Model", "qwen3_5_text": "Qwen3_5TextModel"}
CAPABILITIES: Final[dict[str, tuple[str, ...]]] = {"qwen2": (), "qwen3": (), "qwen3_5_text": ("lapack",)}
_NOT_OF_THE_MODEL: Final = ("architectures", "transformers_version", "torch_dtype", "dtype", "auto_map")


@dataclass(frozen=True, slots=True)
class LowRank:
    """An adapter to be added to the weights: `scale * B @ A` for each module. `factors`: module -> (A [r, in], B [out, r])."""

    factors: Mapping[str, tuple[torch.Tensor, torch.Tensor]]
    scale: float


def backbone_type(config: Mapping[str, Any], source: str) -> str:
    """The model_type of a text decoder that can be run here. Raises PackageError (`unsupported_architecture`)."""
    kind = config.get("model_type")
    if kind not in CLASSES:
        raise PackageError(
            f"{source} describes a backbone of model_type {kind!r:.60}, expected one of {', '.join(sorted(CLASSES))}",
            reason="unsupported_architecture", param=source,
        )  # fmt: skip
    return str(kind)


def load_backbone(
    config: Mapping[str, Any], tensors: PackageTensors, prefix: str, *, dtype: torch.dtype, device: str, source: str,
    low_rank: LowRank | None = None, progress: Callable[[int, int], None] = lambda done, total: None,
) -> Any:  # fmt: skip
    """The model in `dtype` on `device`, its attention exchangeable by masks. `prefix` is that of its tensors' names.

    Raises PackageError: `unsupported_architecture`, `invalid_model_config`, `missing_tensor`, `tensor_shape`, `unexpected_tensor`.
    """
    import transformers  # seconds; nobody pays for them before such a model is loaded

    kind = backbone_type(config, source)
    fields = {key: value for key, value in config.items() if key not in _NOT_OF_THE_MODEL}
    try:
        built_config = transformers.CONFIG_MAPPING[kind].from_dict(fields)
        built_config._attn_implementation = "sdpa"
        with torch.device("meta"):
            model = getattr(transformers, CLASSES[kind])(built_config)
    except Exception as error:  # checks of many authors: anything may be raised
        raise PackageError(
            f"{source} is not what transformers {transformers.__version__} expects of {kind}: {str(error).splitlines()[0][:300]}",
            reason="invalid_model_config", param=source, fix="Check the configuration against the model's original.",
        ) from error  # fmt: skip
    tensors.check({name: tuple(value.shape) for name, value in model.state_dict().items()}, prefix)
    total = sum(info.nbytes for name, info in tensors.infos.items() if name.startswith(prefix))
    state, done = {}, 0
    for name in model.state_dict():
        value = tensors.read(dtype, prefix, [name])[name]
        if low_rank is not None and (factors := low_rank.factors.get(name.removesuffix(".weight"))) is not None:
            down, up = factors
            value = (value.float() + low_rank.scale * (up.float() @ down.float())).to(dtype)
        state[name] = value.to(device)
        done += tensors.infos[prefix + name].nbytes
        progress(done, total)
    model.load_state_dict(state, strict=True, assign=True)
    model.rotary_emb = type(model.rotary_emb)(config=built_config).to(device)  # its tables are computed, not stored
    return model.eval().requires_grad_(False)
