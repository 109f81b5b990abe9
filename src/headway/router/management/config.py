"""The configuration over HTTP: read, checked, planned, changed by compare-and-swap, brought back."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any, Literal

from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

from headway.errors import HeadwayError
from headway.router.config.diagnostics import ConfigRejected
from headway.router.config.history.active import Changed
from headway.router.config.history.versions import etag_of
from headway.router.config.load import Source, examine
from headway.router.config.normal_form import MASK, masked, normal_form, to_yaml
from headway.router.generation.document_hash import document_hash
from headway.router.management.answer import Answer, ManagementError
from headway.router.management.call import Call
from headway.router.management.route import Route

_SECRETS = "secret_view"


async def get_config(call: Call) -> Answer:
    """The source as data: references to the environment are still references. Secrets are shown to roles that may see them."""
    text = call.state.config.text
    data = await data_of(text)
    return Answer(data if call.may(_SECRETS) else masked(data), headers={"ETag": etag_of(text)})


async def data_of(text: str) -> dict[str, Any]:
    """The file's text as data. Raises ManagementError for a file that somebody broke: what serves is still the last good one."""
    try:
        data = await asyncio.to_thread(YAML(typ="safe").load, text)
    except YAMLError:
        data = None
    if not isinstance(data, dict):
        raise ManagementError("CONFIG_PARSE_ERROR", "the configuration file is no YAML mapping now; the last good one goes on serving", 500,
                              fix="`vllm-sr config validate` says where.")  # fmt: skip
    return data


async def put_config(call: Call) -> Answer:
    return await _changed(call, "replace")


async def patch_config(call: Call) -> Answer:
    return await _changed(call, "merge")


async def _changed(call: Call, mode: Literal["replace", "merge"]) -> Answer:
    given = yaml_of(call)
    return applied(call, await apply(call, given, mode))


async def apply(call: Call, given: str, mode: Literal["replace", "merge"]) -> Changed:
    """Raises ManagementError: no If-Match, a stale one, a text that is no configuration or cannot serve."""
    if MASK in given:
        raise ManagementError("CONFIG_VALIDATION_ERROR", f"the configuration holds {MASK}, which stands for a secret that was not shown", fix="Write ${VARIABLE}, or the secret.")
    try:
        return await call.state.config.apply(given, mode, if_match(call))
    except HeadwayError as error:
        raise config_refusal(error) from error


def applied(call: Call, changed: Changed) -> Answer:
    version = changed.version
    body = {
        "status": "active",
        "version": str(version.number),
        "etag": version.etag,
        "generation": call.state.reloader.activation.generation,
        "changes": [{"kind": each.kind, "path": each.path} for each in changed.plan.changes],
    }
    if version.restored is not None:
        body["restored"] = str(version.restored)
    return Answer(body, headers={"ETag": version.etag, "x-vsr-config-version": str(version.number)})


async def validate(call: Call) -> Answer:
    given = yaml_of(call)
    found = await asyncio.to_thread(examine, Source(given, "configuration", call.state.config.folder), call.state.settings.environment)
    body: dict[str, Any] = {"valid": found.valid, "diagnostics": [each.as_json() for each in found.diagnostics]}
    if found.document is not None:
        data = normal_form(found.document)
        body["yaml"] = to_yaml(data if call.may(_SECRETS) else masked(data))
    return Answer(body)


async def plan(call: Call) -> Answer:
    mode = call.json().get("mode", "replace")
    if mode not in ("replace", "merge"):
        raise ManagementError("INVALID_INPUT", f'mode must be "replace" or "merge", found {str(mode)[:40]!r}')
    try:
        planned = await asyncio.to_thread(call.state.config.plan, yaml_of(call), mode)
    except HeadwayError as error:
        raise config_refusal(error) from error
    return Answer(planned.as_json(secrets=call.may(_SECRETS)))


async def versions(call: Call) -> Answer:
    found = await asyncio.to_thread(call.state.config.versions.versions)
    told = [
        {"version": str(each.number), "timestamp": each.created_at, "etag": each.etag, "source": each.origin, "restored": each.restored}
        for each in found
    ]
    return Answer({"versions": told, "current": told[0]["version"] if told else None})


async def rollback(call: Call) -> Answer:
    wanted = str(call.json().get("version", ""))
    if not wanted.isdecimal():
        raise ManagementError("INVALID_INPUT", "version must be the number of a version", fix="GET /api/v1/config/versions lists them.")
    try:
        changed = await call.state.config.rollback(int(wanted), if_match(call))
    except HeadwayError as error:
        raise config_refusal(error) from error
    return applied(call, changed)


async def hashes(call: Call) -> Answer:
    """`source` is of the text in the file, `generated` of what it means, `active` of what serves."""
    activation = call.state.reloader.activation
    text = call.state.config.text
    found = await asyncio.to_thread(examine, Source(text, "configuration", call.state.config.folder), call.state.settings.environment)
    return Answer(
        {
            "source_config_hash": etag_of(text).strip('"'),
            "generated_runtime_hash": document_hash(found.document) if found.document else "",
            "active_runtime_hash": activation.active_hash,
            "activation_status": activation.state,
            "generation": activation.generation,
            "error": activation.error,
            "restart_required": list(activation.restart),
        }
    )


def yaml_of(call: Call) -> str:
    """The text of the body's `yaml`. Raises ManagementError."""
    given = call.json().get("yaml")
    if not isinstance(given, str) or not given.strip():
        raise ManagementError("INVALID_INPUT", "yaml must be the text of a configuration", fix='Send {"yaml": "..."}.')
    return given


def if_match(call: Call) -> str:
    """Raises ManagementError without one."""
    given = call.headers.get("if-match", "").strip()
    if not given:
        raise ManagementError("PRECONDITION_REQUIRED", "If-Match is needed", 428, fix="Read the configuration and send its ETag.")
    return given


_REFUSALS: Mapping[str, tuple[int, str]] = {
    "config_stale": (412, "PRECONDITION_FAILED"),
    "restart_required": (409, "RESTART_REQUIRED"),
    "config_version_unknown": (404, "NOT_FOUND"),
    "config_rejected": (400, "CONFIG_VALIDATION_ERROR"),
    "yaml_invalid": (400, "YAML_PARSE_ERROR"),
    "config_not_a_mapping": (400, "YAML_PARSE_ERROR"),
    "config_unreadable": (500, "CONFIG_PARSE_ERROR"),
    "config_superseded": (409, "DEPLOY_IN_PROGRESS"),
}


def config_refusal(error: HeadwayError) -> ManagementError:
    """A text that was valid and could not serve (a model that does not load) is 422."""
    if isinstance(error, ManagementError):
        return error
    status, code = _REFUSALS.get(error.reason, (422, "CONFIG_ACTIVATION_FAILED"))
    details = {"diagnostics": [each.as_json() for each in error.diagnostics]} if isinstance(error, ConfigRejected) else None
    return ManagementError(code, error.message, status, details=details)


_ROOT = "/api/v1/config"
ROUTES = (
    Route("GET", _ROOT, get_config, "config.read", "The configuration, with its ETag.", ("/config/router",)),
    Route("PUT", _ROOT, put_config, "config.write", "Replace the configuration.", ("/config/router",)),
    Route("PATCH", _ROOT, patch_config, "config.write", "Merge into the configuration.", ("/config/router",)),
    Route("POST", f"{_ROOT}/validate", validate, "config.read", "Check a text."),
    Route("POST", f"{_ROOT}/plan", plan, "config.read", "What a change would do."),
    Route("POST", f"{_ROOT}/rollback", rollback, "config.write", "Bring a version back.", ("/config/router/rollback",)),
    Route("GET", f"{_ROOT}/versions", versions, "config.read", "The versions that are kept, newest first.", ("/config/router/versions",)),
    Route("GET", f"{_ROOT}/hash", hashes, "config.read", "What is in the file, what serves, and why they differ.", ("/config/hash",)),
)
