"""The words of `headway plan`, in English and Chinese; figures are filled in."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal

Language = Literal["en", "zh"]
LANGUAGES: Final[tuple[Language, ...]] = ("en", "zh")

_WORDS: Final[Mapping[str, tuple[str, str]]] = {
    # verdicts
    "fits": ("Fits: {sequences} sequences of {context} tokens at once, {need} of {budget}.", "可以运行：同时 {sequences} 个序列、每个 {context} 个词元，占用 {need}（可用 {budget}）。"),
    "fits_plain": ("Fits: {need} of {budget}.", "可以运行：占用 {need}（可用 {budget}）。"),
    "too_big": ("Does not fit: weights take {weights}, and there are {budget}.", "放不下：权重需要 {weights}，可用 {budget}。"),
    "no_room": ("Does not fit: {need} for {sequences} sequences of {context} tokens, and there are {budget}.",
                "放不下：{sequences} 个序列、每个 {context} 个词元需要 {need}，可用 {budget}。"),
    "obstacle": ("Cannot be split like that: {why}.", "不能这样切分：{why}。"),
    "shorter": ("The longest context that fits is {context} tokens.", "最长可用上下文为 {context} 个词元。"),
    "remedy": ("It fits as {form} on {ranks} x {device} with {context} tokens.", "改用 {form}、{ranks} 张 {device}、上下文 {context} 个词元即可运行。"),
    "no_remedy": ("No split, format or shorter context makes it fit; see --which-device.", "切分、量化或缩短上下文都放不下；请看 --which-device。"),
    "runs": ("{count} of {all} models of the table run on {ranks} x {device} at {context} tokens.",
             "表中 {all} 个模型里有 {count} 个能在 {ranks} 张 {device} 上以 {context} 个词元运行。"),
    "devices": ("{count} of {all} devices of the table run it at {context} tokens, on up to {ranks} of a kind.",
                "表中 {all} 种设备里有 {count} 种能以 {context} 个词元运行它（每种最多 {ranks} 张）。"),
    # headings and rows
    "memory": ("Memory", "显存与内存"), "weights": ("weights", "权重"), "cache": ("KV cache", "KV 缓存"), "activations": ("activations", "激活值"),
    "process": ("process", "进程"), "free": ("free", "空闲"), "over": ("over budget", "超出"), "budget": ("budget", "预算"),
    "model": ("Model", "模型"), "device": ("Device", "设备"), "parameters": ("parameters", "参数"), "of_context": ("context", "上下文"),
    "per_token": ("KV per token", "每词元 KV"), "most": ("Most", "上限"),
    "most_text": ("{context} tokens in one sequence; {sequences} sequences of {length} tokens at once",
                  "单个序列最长 {context} 个词元；每个 {length} 个词元时最多 {sequences} 个并发"),
    "resident": ("Resident", "常驻内存"),
    "resident_text": ("{start} when ready, up to {full} with a full cache", "就绪时 {start}，缓存写满后至多 {full}"),
    "ceilings": ("Ceilings", "速度上限"),
    "ceiling_text": ("decode {one} tokens/s alone, {many} with {sequences}; prefill {prefill} tokens/s",
                     "解码单个序列 {one} 词元/秒，{sequences} 个并发共 {many}；预填充 {prefill} 词元/秒"),
    "roofs_text": ("{bandwidth} and {flops}, {origin}", "{bandwidth}，{flops}，{origin}"),
    "measured": ("measured here", "本机实测"), "given": ("as given", "由参数给出"), "data sheet": ("data sheet", "数据手册"),
    "unmeasured": ("not measured (--no-measure); --bandwidth and --flops give them", "未测量（--no-measure）；可用 --bandwidth 和 --flops 给出"),
    "command": ("Command", "命令"), "note": ("Note", "说明"), "format": ("format", "格式"), "bits": ("bits", "位"),
    "nominal": ("codes", "编码"), "stored": ("stored", "文件大小"), "longest": ("longest context", "最长上下文"),
    "cost": ("usual cost in accuracy", "常见精度代价"), "split": ("tensor parallel", "张量并行"), "each": ("on each", "每张"), "fits_column": ("fits", "可行"),
    "yes": ("yes", "是"), "no": ("no", "否"), "decode": ("decode ceiling", "解码上限"), "at_once": ("at once", "并发"), "cards": ("cards", "张数"),
}  # fmt: skip


def said(language: Language, key: str, **figures: object) -> str:
    """The words of `key` in `language` with its figures."""
    return _WORDS[key][LANGUAGES.index(language)].format(**figures)
