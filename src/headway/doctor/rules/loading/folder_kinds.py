"""Folders that look like a model and are none: an adapter, or GGUF files."""

from __future__ import annotations

import re

from headway.doctor.case import Case
from headway.doctor.evidence.log.line import Hit
from headway.doctor.finding import Fix, Found
from headway.doctor.rules.loading.model_folder import file_named, model_files
from headway.doctor.words import Words


def adapter_folder(case: Case, name: str, hit: Hit) -> Found | None:
    config = file_named(case, "adapter_config.json")
    stated = hit.match.groupdict().get("reason") == "adapter_only"
    if (config is None and not stated) or file_named(case, "config.json") is not None:
        return None
    base = case.context.text("model.adapter.base_model_name_or_path") or case.context.text("model.adapter.base")
    evidence = [hit.quote()]
    if config is not None:
        evidence.append(case.context.quote(f"{config.path}.name"))
        if not base and (said := re.search(r"base_model_name_or_path\"?\s*:\s*\"([^\"]+)\"", config.head)):
            base = said[1]
    alias = name.rstrip("/").rsplit("/", 1)[-1] or "adapter"
    of_base = Words(f" of {base}", f"（基座 {base}）") if base else Words("", "")
    return Found(
        cause=Words(
            f"{name} holds only a LoRA adapter{of_base.en} (adapter_config.json and no config.json): it cannot be served alone. The base model has to be"
            " started and the adapter given to it.",
            f"{name} 里只有 LoRA 适配器{of_base.zh}（有 adapter_config.json，没有 config.json），不能单独提供服务：要启动基座模型，再把适配器交给它。",
        ),
        evidence=evidence,
        fixes=[
            Fix(
                Words(
                    "serve the base model and name the adapter as a LoRA module",
                    "启动基座模型，并把适配器作为 LoRA 模块加载",
                ),
                f"vllm serve {base} --enable-lora --lora-modules {alias}={name}"
                if base
                else f"--enable-lora --lora-modules {alias}={name}",
            ),
            Fix(
                Words(
                    "or merge the adapter into its base model (peft: merge_and_unload) and serve the result",
                    "或用 peft 的 merge_and_unload 把适配器合并进基座模型后再启动",
                )
            ),
        ],
        verify=Words(
            f"`curl -s http://127.0.0.1:8000/v1/models` lists the base model and {alias}",
            f"`curl -s http://127.0.0.1:8000/v1/models` 同时列出基座模型和 {alias}",
        ),
        confidence=0.93,
        title=Words("A LoRA adapter is not a model", "LoRA 适配器不是模型"),
    )


def gguf_folder(case: Case, name: str, hit: Hit) -> Found | None:
    files = [file for file in model_files(case) if file.name.endswith(".gguf")]
    if not files or file_named(case, "config.json") is not None:
        return None
    on_hub = re.fullmatch(r"[\w.\-]+/[\w.\-]+", name) is not None
    file = name if on_hub or name.endswith(".gguf") else f"{name.rstrip('/')}/{files[0].name}"
    return Found(
        cause=Words(
            f"{name} holds only GGUF files ({files[0].name}) without a config.json; a loader for safetensors finds no model in it.",
            f"{name} 中只有 GGUF 文件（{files[0].name}），没有 config.json；面向 safetensors 的加载器在其中找不到模型。",
        ),
        evidence=[hit.quote(), case.context.quote(f"{files[0].path}.name")],
        fixes=[
            Fix(
                Words("serve it with a program that reads GGUF", "用能读取 GGUF 的程序启动"),
                f"headway serve {file}",
            ),
            Fix(Words("or with llama.cpp", "或使用 llama.cpp"), f"llama-server {'-hf' if on_hub else '-m'} {file}"),
        ],
        verify=Words(
            f"`headway plan {file}` names the architecture and the size", f"`headway plan {file}` 给出架构和大小"
        ),
        confidence=0.92,
        title=Words("GGUF files only, no model folder", "只有 GGUF 文件，不是模型目录"),
    )
