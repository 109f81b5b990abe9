"""Providers by id: where their API is, and how a key travels to it. Source: their public API references, as vllm-sr 0.5 lists them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, NamedTuple

DEFAULT_CHAT_PATH = "/chat/completions"


class Provider(NamedTuple):
    """`base_url` is None for what users run themselves. An empty `auth_header` means that the provider takes no key.

    `chat_path` is relative to the base, except for the few whose path begins with an own version. `reasoning` is how efforts travel
    (`top_level_effort`, `reasoning_object`, ...), None inside `chat_template_kwargs`. `user_key_header` carries a caller's own key.
    """

    id: str
    base_url: str | None = None
    auth_header: str = "Authorization"
    auth_prefix: str = "Bearer"
    format: Literal["openai", "responses", "anthropic", "systemone"] = "openai"
    chat_path: str = DEFAULT_CHAT_PATH
    reasoning: str | None = None
    api_version_query: bool = False
    headers: tuple[tuple[str, str], ...] = ()
    user_key_header: str | None = None


_ROWS = (
    Provider("agnes", base_url="https://apihub.agnes-ai.com/v1"),
    Provider("aion", base_url="https://api.aionlabs.ai/v1", reasoning="top_level_effort"),
    Provider("amd-atom"),
    Provider(
        "anthropic",
        base_url="https://api.anthropic.com",
        auth_header="x-api-key",
        auth_prefix="",
        format="anthropic",
        reasoning="output_config_effort",
        headers=(("anthropic-version", "2023-06-01"),),
        user_key_header="x-user-anthropic-key",
    ),
    Provider(
        "anthropic-compatible",
        auth_header="x-api-key",
        auth_prefix="",
        format="anthropic",
        headers=(("anthropic-version", "2023-06-01"),),
    ),
    Provider("apodex", base_url="https://api.apodex.ai/v1"),
    Provider(
        "azure-openai",
        auth_header="api-key",
        auth_prefix="",
        reasoning="top_level_effort",
        api_version_query=True,
        user_key_header="x-user-azure-openai-key",
    ),
    Provider("baidu-ai-studio", base_url="https://aistudio.baidu.com/llm/lmapi/v3"),
    Provider("baidu-qianfan", base_url="https://api.baiduqianfan.ai/v1"),
    Provider("bedrock", user_key_header="x-user-bedrock-key"),
    Provider("celeris", base_url="https://inference.celeris.ai/celeris-1/v1"),
    Provider("cerebras", base_url="https://api.cerebras.ai/v1"),
    Provider("cloudflare-workers-ai", user_key_header="x-user-cloudflare-workers-ai-key"),
    Provider("cohere", base_url="https://api.cohere.com/compatibility/v1"),
    Provider("cometapi", base_url="https://api.cometapi.com/v1"),
    Provider("compactifai", base_url="https://api.compactif.ai/v1", reasoning="top_level_effort"),
    Provider(
        "dashscope", base_url="https://dashscope-intl.aliyuncs.com/compatible-mode/v1", reasoning="top_level_effort"
    ),
    Provider("deepinfra", base_url="https://api.deepinfra.com/v1/openai", reasoning="reasoning_object"),
    Provider("deepseek", base_url="https://api.deepseek.com/v1", reasoning="deepseek_thinking"),
    Provider("docker-model-runner", auth_header="", auth_prefix=""),
    Provider("featherless", base_url="https://api.featherless.ai/v1"),
    Provider("fireworks", base_url="https://api.fireworks.ai/inference/v1"),
    Provider("friendli", base_url="https://api.friendli.ai/serverless/v1"),
    Provider(
        "gemini",
        base_url="https://generativelanguage.googleapis.com/v1beta/openai",
        reasoning="top_level_effort",
        user_key_header="x-user-gemini-key",
    ),
    Provider("groq", base_url="https://api.groq.com/openai/v1"),
    Provider("hugging-face", base_url="https://router.huggingface.co/v1"),
    Provider("inception", base_url="https://api.inceptionlabs.ai/v1", reasoning="top_level_effort"),
    Provider("lemonade", auth_header="", auth_prefix=""),
    Provider("lm-studio", auth_header="", auth_prefix=""),
    Provider("meta", base_url="https://api.meta.ai/v1", reasoning="top_level_effort"),
    Provider("microsoft-foundry", auth_header="api-key", auth_prefix="", chat_path="/mai/v1/chat/completions"),
    Provider("minimax", base_url="https://api.minimax.io/v1", user_key_header="x-user-minimax-key"),
    Provider("mistral", base_url="https://api.mistral.ai/v1"),
    Provider("moonshot", base_url="https://api.moonshot.ai/v1"),
    Provider("nebius", base_url="https://api.studio.nebius.com/v1"),
    Provider("novita", base_url="https://api.novita.ai/openai/v1"),
    Provider("nvidia-nim", base_url="https://integrate.api.nvidia.com/v1"),
    Provider("nvidia-riva"),
    Provider("ollama", auth_header="", auth_prefix=""),
    Provider(
        "openai",
        base_url="https://api.openai.com/v1",
        reasoning="top_level_effort",
        user_key_header="x-user-openai-key",
    ),
    Provider("openai-compatible"),
    Provider("openrouter", base_url="https://openrouter.ai/api/v1", reasoning="reasoning_object"),
    Provider("perplexity", base_url="https://api.perplexity.ai", chat_path="/v1/sonar"),
    Provider("reka", base_url="https://api.reka.ai/v1", auth_header="X-Api-Key", auth_prefix=""),
    Provider("sakana", base_url="https://api.sakana.ai/v1", format="responses", reasoning="reasoning_object"),
    Provider("sambanova", base_url="https://api.sambanova.ai/v1"),
    Provider(
        "sarvam",
        base_url="https://api.sarvam.ai/v1",
        auth_header="api-subscription-key",
        auth_prefix="",
        reasoning="top_level_effort",
    ),
    Provider("sglang"),
    Provider("snowflake-cortex"),
    Provider("stepfun", base_url="https://api.stepfun.ai/v1", reasoning="top_level_effort"),
    Provider("systemone-compatible", format="systemone"),
    Provider("together", base_url="https://api.together.ai/v1"),
    Provider("triton"),
    Provider("upstage", base_url="https://api.upstage.ai/v1", reasoning="top_level_effort"),
    Provider("vercel-ai-gateway", base_url="https://ai-gateway.vercel.sh/v1"),
    Provider("vertex-ai", user_key_header="x-user-vertex-ai-key"),
    Provider("vllm"),
    Provider("volcengine-ark", base_url="https://ark.cn-beijing.volces.com/api/v3", reasoning="top_level_effort"),
    Provider("writer", base_url="https://api.writer.com", chat_path="/v1/chat"),
    Provider("xai", base_url="https://api.x.ai/v1", reasoning="top_level_effort"),
    Provider(
        "xiaomi",
        base_url="https://api.xiaomimimo.com/v1",
        auth_header="api-key",
        auth_prefix="",
        reasoning="thinking_object",
    ),
    Provider("xinference"),
    Provider("zai", base_url="https://api.z.ai/api/paas/v4", reasoning="thinking_object"),
)

PROVIDERS: Mapping[str, Provider] = {row.id: row for row in _ROWS}
DEFAULT_PROVIDER = "vllm"
