"""Target: a provider model with everything that is needed to ask it; compiled from `providers.models`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from urllib.parse import urlsplit

from yarl import URL

from headway.errors import ConfigError
from headway.router.catalog.providers import DEFAULT_CHAT_PATH, DEFAULT_PROVIDER, PROVIDERS, Provider
from headway.router.catalog.reasoning_families import ReasoningFamily
from headway.router.config.document.document import Document
from headway.router.config.document.providers import BackendRef, ModelPricing, ProviderModel
from headway.router.upstream.backend import Backend, Format, UserKey
from headway.router.upstream.reasoning import family_of
from headway.router.upstream.reliability import Reliability, reliability_of

_FORMATS: tuple[Format, ...] = ("openai", "responses", "anthropic")


@dataclass(frozen=True, slots=True)
class Target:
    """`backends` may be empty: then the model can be named but not asked."""

    name: str
    backends: Sequence[Backend]
    reliability: Reliability
    reasoning: ReasoningFamily | None = None
    pricing: ModelPricing | None = None
    prefills: tuple[Backend, ...] = ()


def compile_targets(document: Document, environment: Mapping[str, str]) -> dict[str, Target]:
    """By logical name. Raises ConfigError for a key variable that is not set, and for addresses that are none."""
    models = (document.providers and document.providers.models) or ()
    return {
        model.name: _target(model, environment) for model in models if model.name and model.api_format != "systemone"
    }


def _target(model: ProviderModel, environment: Mapping[str, str]) -> Target:
    assert model.name is not None
    backends = tuple(_backend(model, ref, at, environment) for at, ref in enumerate(model.backend_refs or ()))
    prefills = tuple(
        replace(_backend(model, ref, at, environment), alias=f"{model.name}/prefill/{ref.name or at + 1}") for at, ref in enumerate(model.prefill_refs or ())
    )
    return Target(model.name, backends, reliability_of(model.reliability), family_of(model), model.pricing, prefills)


def _backend(model: ProviderModel, ref: BackendRef, at: int, environment: Mapping[str, str]) -> Backend:
    name = model.name or ""
    provider = PROVIDERS[ref.provider or DEFAULT_PROVIDER]
    style = _format(model, provider)
    base, socket = _address(name, ref, provider)
    query = f"?api-version={ref.api_version}" if ref.api_version and provider.api_version_query else ""
    path = ref.chat_path or _path(style, base, provider)
    if ref.endpoint and ref.chat_path:
        base = base.removesuffix("/v1")
    ids = model.external_model_ids or {}
    return Backend(
        alias=f"{name}/{ref.name or at + 1}",
        model=name,
        base=base,
        chat=URL(base + path + query, encoded=True),
        format=style,
        model_id=ids.get(ref.provider or DEFAULT_PROVIDER) or model.provider_model_id or name,
        weight=1 if ref.weight is None else ref.weight,
        socket=socket,
        query=query,
        headers=_headers(name, ref, provider, style, environment),
        user_key=_user_key(provider),
        reasoning=_transport(style, provider),
        counting=_counting(style, base, query, provider),
    )


def _format(model: ProviderModel, provider: Provider) -> Format:
    wanted = model.api_format or provider.format
    for style in _FORMATS:
        if wanted == style:
            return style
    raise ConfigError(f'api_format of model "{model.name}" is "{wanted}", expected one of {", ".join(_FORMATS)}')


def _address(model: str, ref: BackendRef, provider: Provider) -> tuple[str, str | None]:
    """Base URL without a slash at its end, and the path of a Unix socket."""
    given = ref.endpoint or ref.base_url or provider.base_url
    if not given:
        raise ConfigError(
            f'a backend of model "{model}" has no address', fix="Give it endpoint (host:port) or base_url."
        )
    if given.startswith("unix://"):
        return "http://localhost/v1", given.removeprefix("unix://")
    address = given if "://" in given else f"{ref.protocol or 'http'}://{given}"
    parts = urlsplit(address)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ConfigError(f'a backend of model "{model}" has an address that is no http or https URL')
    base = address.rstrip("/")
    has_version = parts.path.strip("/") or ref.chat_path or provider.format == "anthropic" or provider.chat_path != DEFAULT_CHAT_PATH
    return (base if has_version else base + "/v1"), None


def _path(style: Format, base: str, provider: Provider) -> str:
    if style == "anthropic":
        return "/messages" if base.endswith("/v1") else "/v1/messages"
    if style == "responses":
        return "/responses"
    return provider.chat_path


def _counting(style: Format, base: str, query: str, provider: Provider) -> URL | None:
    """vLLM has its route beside the version, and backends without another provider are taken for vLLM; Anthropic's lies under messages."""
    if style == "anthropic":
        return URL(base + _path(style, base, provider) + "/count_tokens" + query, encoded=True)
    if style == "openai" and provider.id == DEFAULT_PROVIDER:
        return URL(base.removesuffix("/v1") + "/tokenize" + query, encoded=True)
    return None


def _headers(
    model: str, ref: BackendRef, provider: Provider, style: Format, environment: Mapping[str, str]
) -> dict[str, str]:
    headers = {"content-type": "application/json", **{name.lower(): value for name, value in provider.headers}}
    if style == "anthropic":
        headers.setdefault("anthropic-version", "2023-06-01")
    key = ref.api_key
    if ref.api_key_env:
        key = environment.get(ref.api_key_env)
        if not key:
            raise ConfigError(
                f'environment variable {ref.api_key_env}, the key of a backend of model "{model}", is not set'
            )
    if key:
        header = ref.auth_header or provider.auth_header or "Authorization"
        prefix = (
            ref.auth_prefix if ref.auth_prefix is not None else (provider.auth_prefix if not ref.auth_header else "")
        )
        headers[header.lower()] = f"{prefix} {key}" if prefix else key
    headers.update({name.lower(): value for name, value in (ref.extra_headers or {}).items()})
    return headers


def _user_key(provider: Provider) -> UserKey | None:
    if provider.user_key_header is None:
        return None
    return UserKey(
        provider.user_key_header,
        provider.auth_header.lower(),
        f"{provider.auth_prefix} " if provider.auth_prefix else "",
    )


def _transport(style: Format, provider: Provider) -> str | None:
    """How efforts travel to a backend that does not render the chat template itself."""
    if style == "anthropic":
        return "output_config_effort"
    return provider.reasoning or ("top_level_effort" if style == "responses" else None)
