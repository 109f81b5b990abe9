"""PoolingParams: what is read of a prompt; field names as in vLLM."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal, TypeAlias, get_args

from headway.errors import RequestError

PoolingTask: TypeAlias = Literal["embed", "token_embed", "classify", "label_logits"]
TASKS: Final[tuple[str, ...]] = get_args(PoolingTask)


@dataclass(frozen=True, slots=True)
class PoolingParams:
    """`task`: `embed` = one vector, `token_embed` = one for each token, `classify` = probabilities of the model's classes,
    `label_logits` = the logits of `token_ids` as the next token.

    `dimensions`: the first so many numbers of a vector. `use_activation`: unit length for vectors, probabilities instead of
    logits for classes; None = as the engine is configured. Raises RequestError with `param` set.
    """

    task: PoolingTask = "embed"
    dimensions: int | None = None
    use_activation: bool | None = None
    token_ids: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        if self.task not in TASKS:
            raise RequestError(f"task must be one of {', '.join(TASKS)}, got {self.task!r:.60}", param="task")
        if self.dimensions is not None and (not isinstance(self.dimensions, int) or isinstance(self.dimensions, bool) or self.dimensions < 1):
            raise RequestError(f"dimensions must be an integer of at least 1, got {self.dimensions!r:.30}", param="dimensions")
        if self.dimensions is not None and self.task not in ("embed", "token_embed"):
            raise RequestError(f"dimensions are those of vectors, and the task is {self.task}", param="dimensions")
        if (self.task == "label_logits") != bool(self.token_ids):
            raise RequestError("token_ids are needed for the task label_logits, and for no other", param="token_ids")
