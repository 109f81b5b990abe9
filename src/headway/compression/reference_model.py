"""A model of transformers of which one layer at a time has weights: what a layer is fed with, and what it makes of it."""

from __future__ import annotations

import copy
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final

import torch

from headway.artifacts.card import ModelCard
from headway.compression.expert_matrices import ExpertMatrices
from headway.compression.input_sums import InputSums
from headway.errors import NotBuiltError
from headway.models.fallback.head import decoder_of
from headway.models.fallback.refusal import first_line
from headway.models.fallback.transformers_class import transformers_config

# Names in checkpoints -> names in transformers' modules, with ExpertMatrices in them.
_RENAMED: Final = (
    (re.compile(r"^block_sparse_moe\."), "mlp."),
    (re.compile(r"^(mlp\.experts\.\d+)\.w1\."), r"\1.gate_proj."),
    (re.compile(r"^(mlp\.experts\.\d+)\.w3\."), r"\1.up_proj."),
    (re.compile(r"^(mlp\.experts\.\d+)\.w2\."), r"\1.down_proj."),
)


class ReferenceModel:
    """Weights are float32. Raises NotBuiltError (`not_built`) for models that transformers cannot build."""

    def __init__(self, card: ModelCard):
        import transformers  # seconds

        config = transformers_config(card)
        try:
            self._model = _without_weights(getattr(transformers, card.architecture), config)
            self._decoder = decoder_of(self._model)
            self._path, self._layers = _layers_of(self._decoder, self._model)
        except Exception as error:  # code of many authors: anything may be raised
            raise NotBuiltError(
                f"transformers {transformers.__version__} cannot build {card.architecture} from its config: {first_line(error)}",
                param="model", fix="Use a method that needs no calibration: int8, int4-g128 or fp8.",
            ) from error  # fmt: skip
        self._calls: list[tuple[tuple[Any, ...], dict[str, Any]]] = []

    def begin(self, ends: Mapping[str, torch.Tensor], tokens: torch.Tensor) -> Iterator[torch.Tensor]:
        """`ends`: tensors outside of layers, by their names in a checkpoint; `tokens` int64 [batches, batch, length]. What the first layer
        is fed with, float32 [batch, length, hidden], batch by batch. Also learns with which other arguments layers are called: the
        same for all batches, since they are alike in shape."""
        for name, tensor in ends.items():
            _assign(self._model, name, tensor)
        for batch in tokens:
            yield self._called(batch)
        for name in ends:
            _assign(self._model, name, torch.empty_like(_parameter(self._model, name), device="meta"))

    def learn_arguments(self, ends: Mapping[str, torch.Tensor], batch: torch.Tensor) -> None:
        """`begin` for one who has the inputs of layers already."""
        for _ in self.begin(ends, batch[None]):
            pass

    def _called(self, batch: torch.Tensor) -> torch.Tensor:
        """Run the decoder with layers that only write down how they are called."""
        first: list[torch.Tensor] = []
        calls: list[tuple[tuple[Any, ...], dict[str, Any]]] = []

        def record(as_tuple: bool) -> Callable[..., Any]:
            def forward(*args: Any, **options: Any) -> Any:
                hidden = args[0] if args else options.pop("hidden_states")
                first.append(hidden)
                calls.append((args[1:], options))
                return (hidden,) if as_tuple else hidden

            return forward

        for as_tuple in (False, True):
            first.clear()
            calls.clear()
            with _replaced(self._layers, record(as_tuple)), torch.inference_mode():
                try:
                    self._decoder(input_ids=batch, use_cache=False)
                except Exception:
                    if as_tuple:
                        raise
            if len(calls) == len(self._layers) and all(each.shape == first[0].shape for each in first):
                self._calls = calls
                return first[0]
        raise NotBuiltError(f"{type(self._model).__name__} does not call its layers one after the other", param="model")

    @contextmanager
    def layer(self, index: int, tensors: Mapping[str, torch.Tensor]) -> Iterator[None]:
        """`tensors` of the layer, by their names in a checkpoint; may be called again with others while the layer is there."""
        self.fill_layer(index, tensors)
        try:
            yield
        finally:
            self._layers[index].to_empty(device="meta")

    def fill_layer(self, index: int, tensors: Mapping[str, torch.Tensor]) -> None:
        found = {self._inside(index, name): tensor for name, tensor in tensors.items()}
        self._layers[index].load_state_dict(found, assign=True, strict=True)

    def run_layer(self, index: int, inputs: torch.Tensor) -> torch.Tensor:
        """float32 [batch, length, hidden] -> the same."""
        args, options = self._calls[index]
        with torch.inference_mode():
            made: Any = self._layers[index](inputs, *args, **options)
        hidden: torch.Tensor = made[0] if isinstance(made, tuple) else made
        return hidden

    @contextmanager
    def watched(self, index: int, names: Mapping[str, str], sums: Mapping[str, InputSums]) -> Iterator[None]:
        """Let `sums` add what each matrix is fed with; `names`: key of `sums` -> name of the matrix's tensor in a checkpoint."""
        hooks = []
        for key, name in names.items():
            module = self._layers[index].get_submodule(self._inside(index, name).removesuffix(".weight"))
            hooks.append(module.register_forward_pre_hook(_adding(sums[key])))
        try:
            yield
        finally:
            for hook in hooks:
                hook.remove()

    def _inside(self, index: int, name: str) -> str:
        """The name of a layer's tensor in a checkpoint -> inside its module."""
        found = name.removeprefix(f"{self._path}.{index}.")
        for pattern, replacement in _RENAMED:
            found = pattern.sub(replacement, found)
        return found


def _adding(sums: InputSums) -> Callable[[Any, tuple[torch.Tensor, ...]], None]:
    return lambda module, inputs: sums.add(inputs[0])


def _without_weights(model_class: Any, config: Any) -> Any:
    """Parameters on the meta device; what is computed from the config (frequencies and the like) is real."""
    from accelerate import init_empty_weights

    attention = "sdpa" if model_class._supports_sdpa else "eager"  # soft caps need the scores
    with init_empty_weights(include_buffers=False):
        return model_class._from_config(copy.deepcopy(config), dtype=torch.float32, attn_implementation=attention).eval()


def _layers_of(decoder: Any, model: Any) -> tuple[str, Any]:
    """The list of layers and its path in the model. Experts become matrices of their own."""
    [layers] = [child for child in decoder.children() if isinstance(child, torch.nn.ModuleList) and len(child) == model.config.num_hidden_layers]
    path = next(name for name, module in model.named_modules() if module is layers)
    for layer in layers:
        for name, module in list(layer.named_modules()):
            if hasattr(module, "gate_up_proj") and isinstance(module.gate_up_proj, torch.nn.Parameter):
                layer.set_submodule(name, ExpertMatrices(module))
    return path, layers


def _parameter(model: Any, name: str) -> torch.Tensor:
    path, _, leaf = name.rpartition(".")
    found: torch.Tensor = getattr(model.get_submodule(path), leaf)
    return found


def _assign(model: Any, name: str, tensor: torch.Tensor) -> None:
    path, _, leaf = name.rpartition(".")
    setattr(model.get_submodule(path), leaf, torch.nn.Parameter(tensor, requires_grad=False))


@contextmanager
def _replaced(layers: Sequence[Any], forward: Callable[..., Any]) -> Iterator[None]:
    for layer in layers:
        layer.forward = forward
    try:
        yield
    finally:
        for layer in layers:
            del layer.forward
