"""Families of models by how their reasoning is switched and how hard they reason. Source: the models' public cards, as vllm-sr 0.5 lists them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

TYPES = ("chat_template_kwargs", "reasoning_effort", "reasoning_mode", "top_level_reasoning_effort")
MODES = ("enabled", "disabled", "adaptive")


class ReasoningFamily(NamedTuple):
    """`parameter` is the name on the wire of what `type` sets. `levels` are the efforts, weakest first; a family without them has only modes.

    `disabled` is the effort that means no reasoning, `activation_parameter` the template variable that switches it, `effort_flags` maps an
    effort to a template variable that is true for it.
    """

    id: str
    type: str
    parameter: str
    levels: tuple[str, ...] = ()
    default: str | None = None
    modes: tuple[str, ...] = ("enabled", "disabled")
    default_mode: str = "enabled"
    disabled: str | None = None
    activation_parameter: str | None = None
    effort_flags: tuple[tuple[str, str], ...] = ()


# fmt: off
_ROWS = (
    ReasoningFamily("claude-effort-adaptive", "reasoning_effort", "effort", levels=("low", "medium", "high", "xhigh", "max"), default="high", modes=("adaptive", "disabled"), default_mode="adaptive"),
    ReasoningFamily("claude-effort-always-on", "reasoning_effort", "effort", levels=("low", "medium", "high", "xhigh", "max"), default="high", modes=("adaptive",), default_mode="adaptive"),
    ReasoningFamily("claude-effort-opt-in", "reasoning_effort", "effort", levels=("low", "medium", "high", "xhigh", "max"), default="high", modes=("adaptive", "disabled"), default_mode="disabled"),
    ReasoningFamily("deepseek", "reasoning_effort", "reasoning_effort", levels=("low", "high", "max"), default="high", modes=("enabled", "disabled"), default_mode="enabled"),
    ReasoningFamily("deepseek-v3.1", "chat_template_kwargs", "thinking", modes=("enabled", "disabled"), default_mode="enabled"),
    ReasoningFamily("deepseek-v3.2", "chat_template_kwargs", "thinking", modes=("enabled", "disabled"), default_mode="enabled"),
    ReasoningFamily("gemini-flash-four-level-medium", "reasoning_effort", "reasoning_effort", levels=("minimal", "low", "medium", "high"), default="medium", modes=("enabled",), default_mode="enabled"),
    ReasoningFamily("gemini-flash-three-level-medium", "reasoning_effort", "reasoning_effort", levels=("low", "medium", "high"), default="medium", modes=("enabled",), default_mode="enabled"),
    ReasoningFamily("gemma4", "chat_template_kwargs", "enable_thinking", modes=("enabled", "disabled"), default_mode="disabled"),
    ReasoningFamily("glm", "chat_template_kwargs", "enable_thinking", modes=("enabled", "disabled"), default_mode="enabled"),
    ReasoningFamily("glm-5.2", "reasoning_effort", "reasoning_effort", levels=("high", "max"), default="max", modes=("enabled", "disabled"), default_mode="enabled", activation_parameter="enable_thinking"),
    ReasoningFamily("glm-5.3", "reasoning_effort", "reasoning_effort", levels=("low", "high", "max"), default="max", modes=("enabled",), default_mode="enabled"),
    ReasoningFamily("gpt", "reasoning_effort", "reasoning_effort", levels=("minimal", "low", "medium", "high", "xhigh", "max"), default="medium", modes=("enabled", "disabled"), default_mode="enabled", disabled="none"),
    ReasoningFamily("gpt-5.4", "reasoning_effort", "reasoning_effort", levels=("low", "medium", "high", "xhigh"), default="medium", modes=("enabled", "disabled"), default_mode="disabled", disabled="none"),
    ReasoningFamily("gpt-5.5", "reasoning_effort", "reasoning_effort", levels=("low", "medium", "high", "xhigh"), default="medium", modes=("enabled", "disabled"), default_mode="enabled", disabled="none"),
    ReasoningFamily("gpt-5.6", "reasoning_effort", "reasoning_effort", levels=("low", "medium", "high", "xhigh", "max"), default="medium", modes=("enabled", "disabled"), default_mode="enabled", disabled="none"),
    ReasoningFamily("gpt-6-astra", "reasoning_effort", "reasoning_effort", levels=("low", "medium", "high", "xhigh", "max"), modes=("enabled",), default_mode="enabled"),
    ReasoningFamily("gpt-oss", "reasoning_effort", "reasoning_effort", levels=("low", "medium", "high"), default="medium", modes=("enabled",), default_mode="enabled"),
    ReasoningFamily("grok-4.3", "reasoning_effort", "reasoning_effort", levels=("low", "medium", "high"), default="low", modes=("enabled", "disabled"), default_mode="enabled", disabled="none"),
    ReasoningFamily("grok-4.5", "reasoning_effort", "reasoning_effort", levels=("low", "medium", "high"), default="high", modes=("enabled",), default_mode="enabled"),
    ReasoningFamily("grok-4.6", "reasoning_effort", "reasoning_effort", levels=("low", "medium", "high", "xhigh"), default="high", modes=("enabled",), default_mode="enabled"),
    ReasoningFamily("hunyuan", "chat_template_kwargs", "enable_thinking", modes=("enabled", "disabled"), default_mode="enabled"),
    ReasoningFamily("hunyuan-hy3", "reasoning_effort", "reasoning_effort", levels=("low", "high"), default="high", modes=("enabled", "disabled"), default_mode="disabled", disabled="no_think"),
    ReasoningFamily("hunyuan-hy4", "reasoning_effort", "reasoning_effort", levels=("high",), default="high", modes=("enabled", "disabled"), default_mode="enabled", disabled="no_think"),
    ReasoningFamily("inkling", "reasoning_effort", "reasoning_effort", levels=("minimal", "low", "medium", "high", "xhigh", "max"), default="high", modes=("enabled", "disabled"), default_mode="enabled", disabled="none"),
    ReasoningFamily("kimi-k2", "chat_template_kwargs", "thinking", modes=("enabled", "disabled"), default_mode="enabled"),
    ReasoningFamily("kimi-k2-always-on", "chat_template_kwargs", "thinking", modes=("enabled",), default_mode="enabled"),
    ReasoningFamily("kimi-k3", "reasoning_effort", "reasoning_effort", levels=("low", "high", "max"), default="max", modes=("enabled",), default_mode="enabled"),
    ReasoningFamily("mimo", "chat_template_kwargs", "enable_thinking", modes=("enabled", "disabled"), default_mode="enabled"),
    ReasoningFamily("minimax-m3", "reasoning_mode", "thinking_mode", modes=("disabled", "adaptive", "enabled"), default_mode="adaptive"),
    ReasoningFamily("mistral-none-high", "reasoning_effort", "reasoning_effort", levels=("high",), default="high", modes=("enabled", "disabled"), default_mode="disabled", disabled="none"),
    ReasoningFamily("muse-glimmer", "reasoning_effort", "reasoning_strength", levels=("low", "medium", "high", "xhigh"), default="high", modes=("enabled",), default_mode="enabled"),
    ReasoningFamily("muse-spark", "reasoning_effort", "reasoning_effort", levels=("minimal", "low", "medium", "high", "xhigh"), modes=("enabled",), default_mode="enabled"),
    ReasoningFamily("muse-spark-1.3", "reasoning_effort", "reasoning_effort", levels=("minimal", "low", "medium", "high", "xhigh", "max"), modes=("enabled",), default_mode="enabled"),
    ReasoningFamily("nemotron-super", "reasoning_effort", "reasoning_effort", levels=("low", "high"), default="high", modes=("enabled", "disabled"), default_mode="enabled", activation_parameter="enable_thinking", effort_flags=(("low", "low_effort"),)),
    ReasoningFamily("nemotron-thinking-toggle", "chat_template_kwargs", "enable_thinking", modes=("enabled", "disabled"), default_mode="enabled"),
    ReasoningFamily("nemotron-ultra", "reasoning_effort", "reasoning_effort", levels=("medium", "high"), default="high", modes=("enabled", "disabled"), default_mode="enabled", activation_parameter="enable_thinking", effort_flags=(("medium", "medium_effort"),)),
    ReasoningFamily("qwen3", "chat_template_kwargs", "enable_thinking", modes=("enabled", "disabled"), default_mode="enabled"),
    ReasoningFamily("qwen3-always-on", "chat_template_kwargs", "enable_thinking", modes=("enabled",), default_mode="enabled"),
    ReasoningFamily("qwen3.8", "reasoning_effort", "reasoning_effort", levels=("low", "medium", "xhigh"), default="xhigh", modes=("enabled", "disabled"), default_mode="enabled", activation_parameter="enable_thinking"),
    ReasoningFamily("qwen3.8-always-on", "reasoning_effort", "reasoning_effort", levels=("low", "medium", "xhigh"), default="xhigh", modes=("enabled",), default_mode="enabled", activation_parameter="enable_thinking"),
    ReasoningFamily("step-3.7", "reasoning_effort", "reasoning_effort", levels=("low", "medium", "high"), default="medium", modes=("enabled",), default_mode="enabled"),
)
# fmt: on

REASONING_FAMILIES: Mapping[str, ReasoningFamily] = {row.id: row for row in _ROWS}
