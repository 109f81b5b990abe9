"""What was started: the program, its version, the model, and every flag, from the log's own words or the command."""

from __future__ import annotations

import ast
import re
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from math import isfinite
from typing import Final, Literal

from headway.doctor.evidence.context import Context
from headway.doctor.evidence.log.line import Hit
from headway.doctor.evidence.log.log import Log
from headway.doctor.evidence.masking import MASK, names_a_secret
from headway.doctor.evidence.sight import sight
from headway.doctor.facts.fact import Fact

Program = Literal["vllm", "headway", "vllm-srun", "vllm-sr", "llama.cpp", "sglang", "tensorrt-llm", ""]

NON_DEFAULT: Final = sight("non-default args: ", pattern=r"non-default args: (?P<args>\{.*\})", reach=1 << 15)
ENGINE_CONFIG: Final = sight(
    "LLM engine (v", "LLM engine with config", "server_args=ServerArgs(",
    pattern=r"LLM engine (?:\(v(?P<version>[^)]+)\) )?with config: (?P<config>.*)|server_args=ServerArgs\((?P<args>.*?)\)?\s*$", reach=1 << 15,
)  # fmt: skip
NAMESPACE: Final = sight("args: Namespace(", pattern=r"args: Namespace\((?P<args>.*)\)", reach=1 << 15)
VERSION: Final = sight("API server version", pattern=r"(?P<program>vLLM|Headway) API server version (?P<version>\S+)")
_PROGRAMS: Final[dict[Program, tuple[str, ...]]] = {
    "llama.cpp": ("llama_model_loader:", "llama_kv_cache", "ggml_", "llama_init_from_model", "main: server is listening"),
    "sglang": ("sglang", "server_args=ServerArgs("),
    "tensorrt-llm": ("[TensorRT-LLM]", "[TRT-LLM]", "tensorrt_llm"),
    "vllm-srun": ("vllm_srun.", "runtime_log"),
    "vllm-sr": ("starting router", "runtime_process_started"),
    "headway": ("Headway API server", "headway."),
    "vllm": ("vLLM API server", "vllm/", "LLM engine (v", "LLM engine with config", "from vllm"),
}
# the name may stand in what was taken off the line, so any line with the anchor counts
_PROGRAM_SIGHTS: Final = {program: sight(*anchors, pattern="") for program, anchors in _PROGRAMS.items()}
SIGHTS: Final = (NON_DEFAULT, ENGINE_CONFIG, NAMESPACE, VERSION, *_PROGRAM_SIGHTS.values())

# what the engine's own line calls differently from the flag
_CONFIG_NAMES: Final = {"max_seq_len": "max_model_len", "model_path": "model", "mem_fraction_static": "gpu_memory_utilization"}
_SHORT: Final = {"tp": "tensor_parallel_size", "pp": "pipeline_parallel_size", "dp": "data_parallel_size", "q": "quantization", "c": "ctx_size"}


@dataclass(frozen=True, slots=True)
class Launch:
    """`flags`: names with underscores -> what the user gave. `config`: what the engine says it uses (also underscores,
    flag names). A value is the text as given; a bare flag has "True"."""

    program: Program = ""
    version: str = ""
    flags: Mapping[str, Fact[str]] = field(default_factory=dict)
    config: Mapping[str, Fact[str]] = field(default_factory=dict)
    command: str = ""

    def fact(self, name: str) -> Fact[str] | None:
        """What the engine says it uses, else what was given."""
        return self.config.get(name) or self.flags.get(name)

    def value(self, name: str) -> str:
        """`fact` without its quote, "" when unknown."""
        found = self.fact(name)
        return found.value if found else ""

    def number(self, name: str) -> float | None:
        """A finite number, None when it is none."""
        try:
            number = float(self.value(name))
        except ValueError:
            return None
        return number if isfinite(number) else None

    def is_on(self, name: str) -> bool:
        return self.value(name).lower() in ("true", "1", "yes", "on")

    @property
    def model(self) -> str:
        return self.value("model") or self.value("model_tag")


def launch_of(log: Log, context: Context) -> Launch:
    command = context.text("command")
    flags: dict[str, Fact[str]] = {}
    if command:
        quote = context.quote("command")
        flags |= {name: Fact(_safe(name, value), quote) for name, value in command_flags(command)}
    for hit in log.hits(NON_DEFAULT):
        flags |= _literal(hit)
    config: dict[str, Fact[str]] = {}
    for hit in reversed(log.hits(ENGINE_CONFIG)):  # the last line wins; quoting masks, so each name is quoted once
        config |= _pairs(hit, config)
    for hit in log.hits(NAMESPACE):  # older versions list every option, given or not
        config = _namespace(hit) | config
    stated = (hit["version"] for hit in log.hits(VERSION, ENGINE_CONFIG))
    version = next(filter(None, stated), "") or context.text("versions.vllm")
    return Launch(_program(log, command), version, flags, config, command)


def command_flags(command: str) -> Iterator[tuple[str, str]]:
    """(name with underscores, value) of a shell line; the model of `vllm serve MODEL` is `model`. Text that is no
    command gives what looks like flags in it."""
    try:
        words = shlex.split(command.replace("\\\n", " "), comments=False)
    except ValueError:
        words = command.split()
    index = 0
    while index < len(words):
        word = words[index]
        if word == "serve" and index + 1 < len(words) and not words[index + 1].startswith("-"):
            yield "model", words[index + 1]
            index += 2
            continue
        if word == "-m" and index and re.search(r"python[\d.]*$", words[index - 1]):
            index += 2
            continue
        if re.match(r"--?[A-Za-z]", word):
            name, joined, value = word.lstrip("-").partition("=")
            name = name.replace("-", "_")
            name = _SHORT.get(name, name)
            if not joined and index + 1 < len(words) and not re.match(r"--?[A-Za-z]", words[index + 1]):
                value, index = words[index + 1], index + 1
            elif not joined:
                value = "True"
            yield name, value
        index += 1


def _literal(hit: Hit) -> dict[str, Fact[str]]:
    try:
        given = ast.literal_eval(hit["args"])
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        if not re.search(r"[A-Za-z_]\w*\(|<\w", hit["args"]):
            return {}
        # a value is an object: `[LoRAModulePath(name='a', path='/a')]`
        given = {pair["name"]: pair["text"].strip("'\"") for pair in _ENTRY.finditer(hit["args"])}
    quote = hit.quote()
    return {str(name): Fact(_safe(str(name), str(value)), quote) for name, value in given.items()} if isinstance(given, dict) else {}


_VALUE: Final = r"'[^']*'|\"[^\"]*\"|\[[^\[\]]*\]|\{[^{}]*\}|[^,\s{}\[\]]+"
_ENTRY: Final = re.compile(rf"'(?P<name>[a-z_]+)': (?P<text>{_VALUE})")
_OPTION: Final = re.compile(rf"(?P<name>[a-z_]+)=(?P<text>{_VALUE})")


def _namespace(hit: Hit) -> dict[str, Fact[str]]:
    quote = hit.quote()
    return {
        option["name"]: Fact(_safe(option["name"], option["text"].strip("'\"")), quote)
        for option in _OPTION.finditer(hit["args"])
        if option["text"] not in ("None", "''", "[]")
    }


def _safe(name: str, value: str) -> str:
    return MASK if names_a_secret(name) else value


_PAIR: Final = re.compile(r"(?P<name>[a-z_]+)=(?P<value>'[^']*'|\"[^\"]*\"|\{[^{}]*\}|[^,\s]+)")


def _pairs(hit: Hit, known: Mapping[str, Fact[str]]) -> dict[str, Fact[str]]:
    """The first value of every name that is not `known`."""
    facts: dict[str, Fact[str]] = {}
    group = "config" if hit["config"] else "args"
    for pair in _PAIR.finditer(hit[group]):
        name = _CONFIG_NAMES.get(pair["name"], pair["name"])
        if name not in known and name not in facts:
            facts[name] = Fact(pair["value"].strip("'\""), hit.line.quote(hit.match.start(group) + pair.start()))
    return facts


def _program(log: Log, command: str) -> Program:
    for name in ("vllm-srun", "vllm-sr"):
        if re.search(rf"(?:^|[\s/]){name}(?:\s|$)", command):
            return "vllm-srun" if name == "vllm-srun" else "vllm-sr"
    for program, seen in _PROGRAM_SIGHTS.items():
        if log.sees(seen):
            return program
    if re.search(r"(?:^|[\s/])llama-(?:server|cli)\b", command):
        return "llama.cpp"
    if "sglang" in command:
        return "sglang"
    if re.search(r"(?:^|[\s/])headway\b", command):
        return "headway"
    return "vllm" if re.search(r"(?:^|[\s/.])vllm\b", command) else ""
