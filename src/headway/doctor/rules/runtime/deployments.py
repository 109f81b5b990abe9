"""What is known of a deployment: its package, device, endpoint; and what the configuration declares."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from headway.doctor.case import Case
from headway.doctor.evidence.sight import sight
from headway.doctor.evidence.yaml_text import parsed
from headway.doctor.facts.launch import command_flags
from headway.runtime.loading.builtins import builtins

STARTED: Final = sight("runtime_process_started", "attached runtime", pattern=r"^(?:runtime_process_started|attached runtime)\b")
SERVED: Final = sight("vllm_srun.cli: serve ", "vllm-srun serve ", pattern=r"(?:^|vllm-srun )serve (?P<rest>\S.*)")
WAITED: Final = sight("Waiting for Router-managed model deployments", pattern=r"ready: (?P<name>\S+) \((?P<artifact>[^)]+)\)")
ATTACHED: Final = sight("runtime probe failed", pattern=r"^runtime probe failed")
SIGHTS: Final = (STARTED, SERVED, WAITED, ATTACHED)
_HUB_NAME: Final = re.compile(r"[\w.\-]+/[\w.\-]+")


@dataclass(frozen=True, slots=True)
class Deployment:
    """Each field "" when unknown. `managed`: the router starts its process."""

    name: str = ""
    artifact: str = ""
    device: str = ""
    revision: str = ""
    endpoint: str = ""
    managed: bool = False

    @property
    def is_hub_name(self) -> bool:
        return bool(_HUB_NAME.fullmatch(self.artifact))


def deployment(case: Case, name: str) -> Deployment:
    """Of that name; the only one that is known when the name is "" or unknown."""
    known = _known(case)
    if name in known:
        return known[name]
    for each in known.values():
        if name and each.artifact.rpartition("/")[2] == name:
            return each
    if len(known) == 1 and (not name or not next(iter(known))):
        only = next(iter(known.values()))
        return replace(only, name=name or only.name)
    return Deployment(name)


def _known(case: Case) -> dict[str, Deployment]:
    found: dict[str, Deployment] = {}
    for _, tree in documents(case):
        for name, given in declared_deployments(tree).items():
            found[name] = Deployment(
                name, _text(given, "artifact"), _text(given, "device"), _text(given, "revision"), _text(given, "endpoint"), not given.get("endpoint")
            )
    for hit in case.log.hits(WAITED):
        before = found.get(hit["name"], Deployment(hit["name"]))
        found[hit["name"]] = replace(before, artifact=before.artifact or hit["artifact"], managed=True)
    for hit in case.log.hits(STARTED, ATTACHED):
        fields = hit.line.fields
        name = _text(fields, "deployment")
        before = found.get(name, Deployment(name))
        found[name] = Deployment(
            name,
            _text(fields, "artifact") or before.artifact,
            _text(fields, "device") or before.device,
            _text(fields, "revision") or before.revision,
            _text(fields, "endpoint") or before.endpoint,
            before.managed or hit.line.text.startswith("runtime_process_started"),
        )
    if not found:
        command = next((hit["rest"] for hit in case.log.hits(SERVED)), "") or _served(case.context.text("command"))
        if command:
            words = command.split()
            flags = dict(command_flags(command))
            model, _, revision = words[0].partition("@")
            name = flags.get("served_model_name", "")
            found[name] = Deployment(name, model, flags.get("device", ""), flags.get("revision", revision))
    return found


def _served(command: str) -> str:
    found = re.search(r"vllm-srun serve (\S.*)", command)
    return found[1] if found else ""


def documents(case: Case) -> list[tuple[str, Mapping[str, Any]]]:
    """(name, tree) of the configuration files in the context that are readable mappings."""
    found: list[tuple[str, Mapping[str, Any]]] = []
    for name, text in case.context.members("files").items():
        if name.endswith((".yaml", ".yml", ".json")) and isinstance(text, str):
            try:
                tree = parsed(text)
            except ValueError:
                continue
            if isinstance(tree, dict):
                found.append((name, tree))
    return found


def declared_deployments(tree: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    given = inside(tree, "global", "model_catalog", "deployments")
    return {str(name): value for name, value in given.items() if isinstance(value, dict)} if isinstance(given, dict) else {}


def inside(tree: Any, *path: str) -> Any:
    for key in path:
        tree = tree.get(key) if isinstance(tree, Mapping) else None
    return tree


def _text(fields: Mapping[str, Any], name: str) -> str:
    value = fields.get(name)
    return "" if value is None or isinstance(value, (dict, list)) else str(value)


def nearest(name: str, known: Iterable[str]) -> str:
    """The known name that is most like it, "" when none is like it."""
    candidates = [each for each in dict.fromkeys(known) if each != name]
    lowered = {each.lower(): each for each in candidates}
    found = difflib.get_close_matches(name.lower(), lowered, n=1, cutoff=0.5)
    return lowered[found[0]] if found else ""


def flag_or_setting(place: Deployment, flag: str, value: str, setting: str) -> str:
    """A change as the flag of a runtime that a person starts, or as a field of the router's deployment."""
    if place.managed and place.name:
        return f"global.model_catalog.deployments.{place.name}.{setting}: {value}"
    return f"vllm-srun serve {place.artifact} --{flag} {value}" if place.artifact else f"--{flag} {value}"


def parameters_of(*names: str) -> float | None:
    """Parameters of a model: of the built-in table, else what a name says (`9B`)."""
    for name in names:
        for each in builtins():
            if each.parameters and name in (each.repo, each.short_name):
                return float(each.parameters)
    found = re.search(r"[-_](\d+(?:\.\d+)?)([BM])\b", " ".join(names))
    return float(found[1]) * (1e9 if found[2] == "B" else 1e6) if found else None
