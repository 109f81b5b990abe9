"""Kev's answers without Headway: transformers for the backbone, torch for the pointer, the prompt as Kev's documents describe it.

Facts, not code, from github.com/jaredpalmer/kev (model.py, api.py): the five delimiters and their order, `<|x|>` in texts broken
up with broken bars, values flattened into lines, options `name: description`, sides no and yes, levels by their description,
logits `q(h_decide) . k(h_option_end) / sqrt(d)` over a temperature.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import torch
import transformers
from safetensors.torch import load_file
from tokenizers import Tokenizer


def lines(value: Any, level: int = 0) -> list[str]:
    if isinstance(value, dict):
        found = []
        for key, inner in value.items():
            deep = isinstance(inner, dict | list)
            found.append("  " * level + key + (":" if deep else ": " + "\n".join(lines(inner))))
            found += ["\n".join(lines(inner, level + 1))] if deep else []
        return found
    if isinstance(value, list):
        return ["  " * level + "- " + "\n".join(lines(inner, level + 1)).lstrip() for inner in value]
    return ["" if value is None else str(value)]


class KevOracle:
    def __init__(self, folder: Path):
        base = folder / "base" if (folder / "base").exists() else folder
        self.tokenizer = Tokenizer.from_file(str(base / "tokenizer.json"))
        config = json.loads((base / "config.json").read_text())
        weights = {name.removeprefix("model."): tensor for name, tensor in load_file(base / "model.safetensors").items()}
        if base != folder:
            self._add_adapter(folder, weights)
        kind = {"qwen3": ("Qwen3Config", "Qwen3Model"), "qwen3_5_text": ("Qwen3_5TextConfig", "Qwen3_5TextModel")}[config["model_type"]]
        self.model = getattr(transformers, kind[1])(getattr(transformers, kind[0])(**{k: v for k, v in config.items() if k not in ("architectures", "temperature")}))
        self.model.load_state_dict(weights)
        self.model.eval()
        if (folder / "head.pt").exists():
            stored = torch.load(folder / "head.pt", weights_only=True)
            self.head, self.temperature = stored["head"], stored["temperature"]
        else:
            self.head, self.temperature = load_file(folder / "head.safetensors"), config["temperature"]

    @staticmethod
    def _add_adapter(folder: Path, weights: dict[str, torch.Tensor]) -> None:
        settings = json.loads((folder / "adapter_config.json").read_text())
        factors = {name: tensor.numpy() for name, tensor in load_file(folder / "adapter_model.safetensors").items()}
        for name, down in factors.items():
            if name.endswith("lora_A.weight"):
                module = name.removeprefix("base_model.model.").removesuffix(".lora_A.weight")
                up = factors[name.replace("lora_A", "lora_B")]
                weights[f"{module}.weight"] += torch.from_numpy(settings["lora_alpha"] / settings["r"] * up @ down)

    def _ids(self, value: Any) -> list[int]:
        text = re.sub(r"<\|(\w+?)\|>", "<¦\\1¦>", "\n".join(lines(value)), flags=re.ASCII)
        found: list[int] = self.tokenizer.encode(text, add_special_tokens=False).ids
        return found

    def _mark(self, name: str) -> list[int]:
        return [self.tokenizer.token_to_id(f"<|{name}|>")]

    def probabilities(self, state: Any, question: dict[str, Any]) -> np.ndarray[Any, Any]:
        criteria = question.get("criteria") or {}
        if question["type"] == "score":
            options = ["\n".join(lines(level)) for level in criteria]
        else:
            named = criteria if question["type"] == "choice" else {"no": criteria.get("false"), "yes": criteria.get("true")}
            options = [name if text in (None, "") else name + ": " + "\n".join(lines(text)) for name, text in named.items()]
        ids = self._mark("fim_prefix") + self._ids(state) + self._mark("fim_middle") + self._ids(question.get("instructions"))
        ends = []
        for option in options:
            ids += self._mark("box_start") + self._ids(option) + self._mark("box_end")
            ends.append(len(ids) - 1)
        ids += self._mark("fim_suffix")
        with torch.no_grad():
            hidden = self.model(input_ids=torch.tensor([ids])).last_hidden_state[0].double().numpy()
        head = {name: tensor.double().numpy() for name, tensor in self.head.items()}
        query = head["q.weight"] @ hidden[-1] + head["q.bias"]
        logits = np.array([(head["k.weight"] @ hidden[end] + head["k.bias"]) @ query for end in ends]) / np.sqrt(len(query)) / self.temperature
        shifted = np.exp(logits - logits.max())
        return shifted / shifted.sum()
