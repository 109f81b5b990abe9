"""LoRARequest: names an adapter in `LLM.generate(..., lora_request=...)`; names as in vLLM."""

from __future__ import annotations

from dataclasses import dataclass

from headway.errors import RequestError


@dataclass(frozen=True, slots=True)
class LoRARequest:
    """`lora_int_id` stands for the adapter, which is read from the folder `lora_path` when the id is first seen. `load_inplace`: read it
    again, and let the id stand for that from now on. Raises RequestError with `param` set."""

    lora_name: str
    lora_int_id: int
    lora_path: str = ""
    base_model_name: str | None = None
    load_inplace: bool = False

    def __post_init__(self) -> None:
        if type(self.lora_int_id) is not int or self.lora_int_id < 1:
            raise RequestError(f"id must be > 0, got {self.lora_int_id!r:.60}", param="lora_int_id")
        for name in ("lora_name", "lora_path"):
            value = getattr(self, name)
            if not isinstance(value, str) or not value:
                raise RequestError(f"{name} cannot be empty, got {value!r:.60}", param=name)

    @property
    def adapter_id(self) -> int:
        return self.lora_int_id

    @property
    def name(self) -> str:
        return self.lora_name

    @property
    def path(self) -> str:
        return self.lora_path
