"""quantize: a dense model -> a folder with a compressed one, layer by layer, in the memory of one layer, and going on where it was interrupted."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict
from typing import Any, Final

import torch

from headway import __version__
from headway.artifacts.cache_folders import headway_cache
from headway.artifacts.card import ModelCard
from headway.artifacts.remembered_digests import remembered_sha256
from headway.artifacts.tokenizer import Tokenizer, load_tokenizer
from headway.compression.calibration_text import Windows, packaged_texts, texts_of_file, windows
from headway.compression.claim import claim
from headway.compression.dense_source import DenseSource, StackNames, dense_modules
from headway.compression.disk_space import check_space, writing
from headway.compression.group_size import SIZES, group_size
from headway.compression.hidden_file import HiddenFile
from headway.compression.input_sums import InputSums
from headway.compression.layer_work import Layer, compress, read_layer
from headway.compression.quantizable import planned
from headway.compression.reference_model import ReferenceModel
from headway.compression.report import Report
from headway.compression.request import QuantizeRequest
from headway.compression.rounding import Grid, grid_of
from headway.compression.side_files import write_index, write_side_files
from headway.compression.tensor_file import Planned, here, write_tensors
from headway.compression.work_folder import WorkFolder
from headway.quantization.weight_reader import WeightReader

Progress = Callable[[str, int, int], None]  # what is being done, steps done, steps in all
_BATCH_TOKENS: Final = 4096


def quantize(card: ModelCard, request: QuantizeRequest, progress: Progress = lambda label, done, total: None) -> Report:
    """Raises ArtifactError and NotBuiltError for models that cannot be compressed, ConfigError for requests that cannot be met (`output_exists`,
    `output_busy`, `output_unwritable`, `disk_full`, `calibration_file`, `calibration_too_small`, `group_size`)."""
    began = time.monotonic()
    plan = planned(card)
    tokenizer = load_tokenizer(card)
    with WeightReader(plan.card) as reader, torch.no_grad():
        source = DenseSource(plan, reader)
        run = _Run(card, request, source, tokenizer, progress)
        with writing(request.output), WorkFolder(request.output).opened() as work:
            return run.report(*run.layers(work), time.monotonic() - began)


class _Run:
    """What all layers of a run share."""

    def __init__(self, card: ModelCard, request: QuantizeRequest, source: DenseSource, tokenizer: Tokenizer, progress: Progress):
        self._card, self._request, self._source, self._tokenizer = card, request, source, tokenizer
        self._method = request.method
        self._matrices = [names for names in source.stacks if names.is_matrix]
        group = group_size((names.width for names in self._matrices), request.group) if self._method.grouped else None
        self._dtype = request.dtype or source.dtype
        self._grid: Grid = grid_of(self._method, group, self._dtype)
        self._dtype_name = str(self._dtype).removeprefix("torch.")
        self._count = source.config.num_layers
        self._notes: list[str] = []
        if group is not None and request.group is None and group != SIZES[0]:
            self._notes.append(f"groups of {group} inputs: {SIZES[0]} does not divide the inputs of every matrix")
        self._windows: Windows | None = self._calibration() if self._method.calibrated else None
        self._progress = progress
        batches = 0 if self._windows is None else len(_batches(self._windows.tokens))
        self._steps_of_layer = 1 + 2 * batches
        self._steps = 0

    def _calibration(self) -> Windows:
        request, longest = self._request, self._card.context_length or self._request.length
        length = min(request.length, longest)
        if length < request.length:
            self._notes.append(f"samples of {length} tokens: the model reads no more")
        if request.calibration is None:
            return self._noted(windows(packaged_texts(), self._tokenizer, request.samples, length, "the text that comes with Headway"))
        texts = texts_of_file(request.calibration, self._tokenizer)
        return self._noted(windows(texts, self._tokenizer, request.samples, length, str(request.calibration)))

    def _noted(self, found: Windows) -> Windows:
        self._notes += found.notes
        return found

    def _digest(self) -> str:
        """Of everything that the bytes of the result follow from."""
        notes = headway_cache() / "digests"
        identity = {
            "version": [__version__, torch.__version__],
            "files": [remembered_sha256(file, notes) for file in self._card.files],
            "config": dict(self._card.config),
            "method": asdict(self._method),
            "grid": [self._grid.group, str(self._dtype)],
            "gptq": asdict(self._request.gptq),
            "calibration": None if self._windows is None else self._windows.digest,
        }
        return hashlib.sha256(json.dumps(identity, sort_keys=True, default=str).encode()).hexdigest()

    def layers(self, work: WorkFolder) -> tuple[list[dict[str, Any]], int]:
        """All layers and the rest, each a file; what is known of each, and how many were there before this run."""
        digest = self._digest()
        check_space(work.path, self._stored_bytes(), self._hidden(work, 0).nbytes)
        done = work.begin(digest)
        if done is None:
            self._notes.append("an interrupted run with another model or other settings was thrown away")
            done = []
        if done and self._windows is not None and len(done) < self._count and not self._hidden(work, len(done)).is_whole():
            done = []
        before = len(done)
        self._steps = before * self._steps_of_layer
        if before < self._count:
            each = self._plain_layers(before) if self._windows is None else self._calibrated_layers(work, before)
            for layer, errors in each:
                done.append(self._write_layer(work, layer, errors))
                work.remember(digest, done)
                self._hidden(work, layer.index).path.unlink(missing_ok=True)
        if len(done) == self._count:
            self._step("the rest")
            done.append(self._write(work, self._count, self._ends()))
            work.remember(digest, done)
        self._finish(work, done)
        return done, before

    def _plain_layers(self, first: int) -> Iterator[tuple[Layer, list[dict[str, Any]]]]:
        for index in range(first, self._count):
            layer = read_layer(self._source, index, self._source.stacks)
            yield layer, self._compress(layer, {})
            self._step(f"layer {index + 1} of {self._count}")

    def _calibrated_layers(self, work: WorkFolder, first: int) -> Iterator[tuple[Layer, list[dict[str, Any]]]]:
        """Each layer is fed with what the layers before it, compressed, make of the texts."""
        assert self._windows is not None
        reference, tokens = ReferenceModel(self._card), _batches(self._windows.tokens)
        ends = self._read_ends()
        if first == 0:
            self._hidden(work, 0).write(reference.begin(ends, tokens))
        else:
            reference.learn_arguments(ends, tokens[0])
        del ends
        for index in range(first, self._count):
            label = f"layer {index + 1} of {self._count}"
            layer, hidden = read_layer(self._source, index, self._source.stacks), self._hidden(work, index)
            sums = {module: InputSums(layer.names[module, "weight"].width) for module in layer.matrices}
            fed = {module: layer.names[module, "weight"].written[0].source for module in layer.matrices}
            with reference.layer(index, layer.tensors(self._source)):
                with reference.watched(index, fed, sums):
                    for batch in hidden.batches():
                        reference.run_layer(index, batch)
                        self._step(f"{label}: texts")
                errors = self._compress(layer, sums)
                sums.clear()
                self._step(label)
                if index + 1 < self._count:
                    reference.fill_layer(index, layer.tensors(self._source))
                    self._hidden(work, index + 1).write(self._outputs(reference, index, hidden, f"{label}: compressed"))
            yield layer, errors

    def _outputs(self, reference: ReferenceModel, index: int, hidden: HiddenFile, label: str) -> Iterator[torch.Tensor]:
        for batch in hidden.batches():
            yield reference.run_layer(index, batch)
            self._step(label)

    def _compress(self, layer: Layer, sums: Mapping[str, InputSums]) -> list[dict[str, Any]]:
        found = compress(layer, self._source, self._method, self._grid, sums, self._request.gptq, self._dtype)
        return [{"layer": layer.index, **asdict(each)} for each in found]

    def _write_layer(self, work: WorkFolder, layer: Layer, errors: list[dict[str, Any]]) -> dict[str, Any]:
        stored = layer.stored(self._source, self._grid, self._dtype)
        return {**self._write(work, layer.index, {name: here(tensor) for name, tensor in stored.items()}), "errors": errors}

    def _write(self, work: WorkFolder, number: int, tensors: Mapping[str, Planned]) -> dict[str, Any]:
        name = f"model-{number + 1:05d}-of-{self._count + 1:05d}.safetensors"
        nbytes = write_tensors(work.checkpoint / name, tensors)
        return {"file": name, "bytes": nbytes, "tensors": {tensor: planned.nbytes for tensor, planned in tensors.items()}, "errors": []}

    def _outside(self) -> list[StackNames]:
        return [names for names in self._source.stacks if not names.module.startswith("layers.")]

    def _ends(self) -> dict[str, Planned]:
        """Embedding, last norm and head: read when they are written."""

        def made(names: StackNames, name: str) -> Callable[[], torch.Tensor]:
            return lambda: self._source.as_written(names, self._source.stack(names))[name].to(self._dtype)

        return {
            part.source: Planned(self._dtype, part.shape, made(names, part.source)) for names in self._outside() for part in names.written
        }

    def _read_ends(self) -> dict[str, torch.Tensor]:
        found: dict[str, torch.Tensor] = {}
        for names in self._outside():
            if names.module != "head":
                found |= self._source.as_written(names, self._source.stack(names))
        return found

    def _hidden(self, work: WorkFolder, index: int) -> HiddenFile:
        batches, batch, length = (0, 0, 0) if self._windows is None else _batches(self._windows.tokens).shape
        return HiddenFile(work.path / f"hidden-{index}.f32", (batches, batch, length, self._source.config.hidden_size))

    def _finish(self, work: WorkFolder, done: list[dict[str, Any]]) -> None:
        places = {tensor: record["file"] for record in done for tensor in record["tensors"]}
        section = claim(
            self._method, self._grid.group, dense_modules(self._source.stacks), act_order=self._method.fit == "gptq" and self._request.gptq.act_order
        )
        write_index(work.checkpoint, places, sum(nbytes for record in done for nbytes in record["tensors"].values()))
        write_side_files(self._card, self._tokenizer, self._dtype_name, section, work.checkpoint)
        work.finish()

    def _stored_bytes(self) -> int:
        total = 0
        for names in self._source.stacks:
            for part in names.written:
                elements = 1
                for size in part.shape:
                    elements *= size
                bits = self._grid.bits + 32 / (self._grid.group or 32) if names.is_matrix else 8 * self._dtype.itemsize
                total += int(elements * bits / 8)
        return total

    def _step(self, label: str) -> None:
        self._steps += 1
        self._progress(label, self._steps, self._count * self._steps_of_layer + 1)

    def report(self, done: list[dict[str, Any]], before: int, seconds: float) -> Report:
        after = sum(record["bytes"] for record in done)
        weights = sum(part.shape[0] * part.shape[1] for names in self._matrices for part in names.written)
        dense = {part.source for names in self._source.stacks if not names.is_matrix for part in names.written}
        packed = sum(nbytes for record in done for tensor, nbytes in record["tensors"].items() if tensor not in dense)
        calibration = None if self._windows is None else {
            "source": "packaged" if self._request.calibration is None else str(self._request.calibration),
            "samples": len(self._windows.tokens), "tokens": self._windows.tokens.numel(),
        }  # fmt: skip
        return Report(
            model=self._card.reference, method=self._method.name, output=self._request.output, group_size=self._grid.group,
            dtype=self._dtype_name, bytes_before=self._card.weight_bytes, bytes_dense=self._dtype.itemsize * self._card.parameters, bytes_after=after, bits=8 * after / self._card.parameters, matrix_bits=8 * packed / weights,
            calibration=calibration, layers=tuple(error for record in done for error in record["errors"]), notes=tuple(self._notes),
            resumed_at=before, seconds=seconds,
        )  # fmt: skip


def _batches(tokens: torch.Tensor) -> torch.Tensor:
    """[samples, length] -> [batches, batch, length], with batches of one size."""
    samples, length = tokens.shape
    most = max(_BATCH_TOKENS // length, 1)
    batch = next(size for size in range(min(most, samples), 0, -1) if samples % size == 0)
    return tokens.view(-1, batch, length)
