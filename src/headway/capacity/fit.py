"""Does a model with its KV cache fit, and how long may a sequence be? One report, and errors that show the arithmetic."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from headway.capacity.byte_text import byte_text
from headway.capacity.kv_budget import KvBudget
from headway.capacity.kv_geometry import KvGeometry
from headway.errors import CapacityError, ConfigError

AUTO: Final = -1


@dataclass(frozen=True, slots=True)
class CapacityReport:
    """What was decided. `num_blocks` blocks can hold tokens; a pool with a reserved null block has one more, whose bytes
    are already taken off the budget."""

    weight_bytes: int
    kv_dtype_bytes: int
    geometry: KvGeometry
    block_size: int
    num_blocks: int
    budget: KvBudget
    max_model_len: int
    context_length: int | None

    @property
    def tokens(self) -> int:
        """Tokens that fit the cache."""
        return self.num_blocks * self.block_size

    @property
    def bytes_per_token(self) -> int:
        return self.geometry.bytes_per_token(self.kv_dtype_bytes)

    @property
    def kv_bytes(self) -> int:
        """Bytes of all blocks, the null block included."""
        return (self.num_blocks + 1) * self.block_size * self.bytes_per_token

    @property
    def max_concurrency(self) -> float:
        """Sequences of the full length that fit at once: whole blocks over blocks per sequence."""
        return self.num_blocks / _blocks(self.max_model_len, self.block_size)

    def equation(self) -> str:
        """The numbers in one line, for the log."""
        g = self.geometry
        vector = f"{g.head_dim} x {self.kv_dtype_bytes} B"
        if g.scale_bytes:
            vector = f"({vector} + {g.scale_bytes} B)"
        return (
            f"weights {byte_text(self.weight_bytes)}; KV cache {byte_text(self.kv_bytes)} = ({self.num_blocks} + 1 null) blocks"
            f" x {self.block_size} tokens x {self.bytes_per_token} B"
            f" (2 x {g.layers} layers x {g.kv_heads} KV heads x {vector});"
            f" budget {byte_text(self.budget.nbytes)} = {self.budget.rule};"
            f" {self.tokens} tokens, max_model_len {self.max_model_len}, {self.max_concurrency:.2f} sequences of that length at once"
        )


def fit(
    geometry: KvGeometry,
    budget: KvBudget,
    *,
    weight_bytes: int,
    kv_dtype_bytes: int,
    block_size: int = 16,
    max_model_len: int | None = None,
    context_length: int | None = None,
    num_blocks_override: int | None = None,
    allow_longer_context: bool = False,
) -> CapacityReport:
    """Decide blocks and `max_model_len`: None = the model's context, -1 = the longest that fits, else as asked.

    `num_blocks_override` counts usable blocks. Raises CapacityError (`does_not_fit`) when a sequence of the wanted
    length has no room, ConfigError (`max_model_len_too_long`) when it is longer than the model's context, unless
    `allow_longer_context`.
    """
    per_block = geometry.bytes_per_block(block_size, kv_dtype_bytes)
    if num_blocks_override is not None:
        if num_blocks_override < 1:
            raise ConfigError(
                f"--num-gpu-blocks-override must be at least 1, found {num_blocks_override}",
                param="num_gpu_blocks_override",
            )
        num_blocks = num_blocks_override
        budget = KvBudget((num_blocks + 1) * per_block, "--num-gpu-blocks-override")
    else:
        num_blocks = budget.nbytes // per_block - 1
    if num_blocks < 1:
        raise CapacityError(
            f"the KV cache has {byte_text(budget.nbytes)} ({budget.rule}), and one block of {block_size} tokens takes"
            f" {byte_text(per_block)}, the null block as much again",
            param="kv_cache_memory_bytes",
            fix=f"Give at least --kv-cache-memory-bytes {2 * per_block}.",
        )
    length = _length(max_model_len, context_length, num_blocks * block_size, allow_longer_context)
    report = CapacityReport(
        weight_bytes, kv_dtype_bytes, geometry, block_size, num_blocks, budget, length, context_length
    )
    if _blocks(length, block_size) > num_blocks:
        raise _too_long(report)
    return report


def _blocks(tokens: int, block_size: int) -> int:
    return -(-tokens // block_size)


def _length(wanted: int | None, context: int | None, tokens: int, allow_longer: bool) -> int:
    if wanted == AUTO:
        return min(tokens, context) if context is not None else tokens
    if wanted is None:
        if context is None:
            raise ConfigError(
                "the model's configuration states no context length",
                param="max_model_len",
                reason="context_unknown",
                fix="Give --max-model-len.",
            )
        return context
    if wanted < 1:
        raise ConfigError(f"--max-model-len must be positive, or -1 or auto, found {wanted}", param="max_model_len")
    if context is not None and wanted > context and not allow_longer:
        raise ConfigError(
            f"User-specified max_model_len ({wanted}) is greater than the derived max_model_len ({context}, from the model's configuration)",
            reason="max_model_len_too_long",
            param="max_model_len",
            fix=f"Use at most {context}, or set VLLM_ALLOW_LONG_MAX_MODEL_LEN=1 if the model extrapolates.",
        )
    return wanted


def _too_long(report: CapacityReport) -> CapacityError:
    """Say what is needed, what there is, the longest that fits, and what to type."""
    per_block = report.bytes_per_token * report.block_size
    blocks = _blocks(report.max_model_len, report.block_size)
    needed = (blocks + 1) * per_block
    if report.budget.rule == "--num-gpu-blocks-override":
        more = f"give --num-gpu-blocks-override {blocks}"
    else:
        more = f"give the cache more memory with --kv-cache-memory-bytes {needed}"
    return CapacityError(
        f"To serve at least one request with the model's max seq len ({report.max_model_len}), {byte_text(needed)} of memory for the KV"
        f" cache is needed, and it has {byte_text(report.budget.nbytes)} ({report.budget.rule})."
        f" The longest sequence that fits has {report.tokens} tokens and takes {byte_text(report.kv_bytes)}",
        param="max_model_len",
        fix=f"Use --max-model-len {report.tokens} (or auto), or {more}.",
    )
