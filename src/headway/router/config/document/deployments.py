"""Deployments of a configuration document: models that the router runs itself, or asks where they run, and who uses them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import Annotated, ClassVar, Literal
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field, model_validator

from headway.router.config.document.node import Node, not_supported

_HUB_NAME = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*")


def _artifact(text: str) -> str:
    if not PurePosixPath(text).is_absolute() and not _HUB_NAME.fullmatch(text):
        raise ValueError("artifact must be a Hub repository ID or an absolute package path")
    return text


def _revision(text: str) -> str:
    if not re.fullmatch("[0-9a-f]{40}", text):
        raise ValueError("revision must be a 40-hex commit")
    return text


def _endpoint(text: str) -> str:
    parts = urlsplit(text)
    if parts.scheme == "unix":
        if parts.netloc or not PurePosixPath(parts.path).is_absolute():
            raise ValueError("a unix:// endpoint needs an absolute path, as in unix:///run/runtime.sock")
    elif parts.scheme not in ("http", "https") or not parts.netloc:
        raise ValueError("an endpoint is http://host:port, https://host:port or unix:///path")
    return text


def _exact(text: str) -> str:
    if text != text.strip() or not text or any(letter in text for letter in "\0\r\n"):
        raise ValueError("a served name is one line without spaces around it")
    return text


def _public(text: str) -> str:
    if not text or any(letter in text for letter in "\0\r\n\t ") or text.startswith("/") or "://" in text:
        raise ValueError("public_name is a model id without spaces; it is no path and no URL")
    return text


def _dtype(word: str) -> str:
    if word != "auto":
        raise not_supported(f"dtype {word}", "the runtime computes in the precision of the package; choose a package in another one")
    return word


def _on_overflow(word: str) -> str:
    if word != "reject":
        raise not_supported(f"on_overflow {word}", "what finds no place is refused (reject); its signal then counts as unanswered, reason overloaded")
    return word


Device = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]*(:[0-9]+)?$")]
Endpoint = Annotated[str, AfterValidator(_endpoint)]
ServedName = Annotated[str, AfterValidator(_exact)]


class ModelInputBudget(Node):
    """What happens to longer inputs. `window` reads overlapping parts, `max_tokens` in all."""

    max_tokens: int | None = Field(default=None, ge=0)
    overflow: Literal["reject", "truncate", "window"] | None = None


class ModelReplica(Node):
    """One more worker on `device`, or one that runs already at `endpoint`."""

    device: Device | None = None
    endpoint: Endpoint | None = None
    served_name: ServedName | None = None

    @model_validator(mode="after")
    def _placed_once(self) -> ModelReplica:
        _check_placement(self)
        return self


class ModelDeployment(Node):
    """A model of a model runtime that the router starts, or of one that is attached by its `endpoint`. `accept_licences`, an addition of Headway, are words
    of restricted licences that the operator accepts for the workers that the router starts."""

    absent: ClassVar[Mapping[str, str]] = {
        "process": "each replica is a process of its own; use replicas",
        "external_model": "services of other kinds are not asked; attach a model runtime by its endpoint",
    }

    artifact: Annotated[str, AfterValidator(_artifact)] | None = None
    revision: Annotated[str, AfterValidator(_revision)] | None = None
    provider: Literal["model_runtime"]
    device: Device | None = None
    input: ModelInputBudget | None = None
    max_num_seqs: int | None = Field(default=None, ge=1)
    max_num_batched_tokens: int | None = Field(default=None, ge=8)
    batch_window_ms: float | None = Field(default=None, ge=0, le=1000)
    dtype: Annotated[Literal["auto", "float32", "bfloat16", "float16"], AfterValidator(_dtype)] | None = None
    enable_shared_context: bool | None = None
    endpoint: Endpoint | None = None
    replicas: list[ModelReplica] | None = Field(default=None, max_length=64)
    served_name: ServedName | None = None
    public_name: Annotated[str, AfterValidator(_public)] | None = None
    accept_licences: list[Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$", max_length=64)]] = Field(default=[], max_length=16)

    @model_validator(mode="after")
    def _is_coherent(self) -> ModelDeployment:
        if self.replicas:
            foreign = [name for name in ("device", "endpoint", "served_name") if getattr(self, name) is not None]
            if foreign:
                raise ValueError(f"{', '.join(foreign)} belong into each of the replicas when there are replicas")
            attached = [(each.endpoint.rstrip("/"), each.served_name or "") for each in self.replicas if each.endpoint]
            if len(set(attached)) != len(attached):
                raise ValueError("two replicas are the same endpoint and served_name")
        else:
            _check_placement(self)
        if self.artifact is None and not (self.endpoint or (self.replicas and all(each.endpoint for each in self.replicas))):
            raise ValueError("a model that the router runs needs artifact: a Hub repository ID or an absolute package path")
        if self.accept_licences and self.artifact is None:
            raise ValueError("accept_licences is for models that the router runs; an attached runtime has accepted its licences itself")
        if self.revision is not None and (self.artifact or "").startswith("/"):
            raise ValueError("revision belongs to a Hub repository; the artifact is a path")
        return self


def _check_placement(place: ModelReplica | ModelDeployment) -> None:
    if place.endpoint and place.device:
        raise ValueError("device is the choice of who runs the model; an attached endpoint has none")
    if place.served_name and not place.endpoint:
        raise ValueError("served_name selects a model of an attached endpoint; give endpoint too")


class PairScorerSelection(Node):
    """An exit of a reranker; 0 means its full depth or width."""

    layer: int = Field(default=0, ge=0)
    dimension: int = Field(default=0, ge=0)


class OperatingPointReference(Node):
    """Thresholds that were chosen for a model, by the hash of their file; a relative path lies inside the artifact."""

    path: str = Field(min_length=1)
    sha256: str = Field(pattern="^[0-9a-f]{64}$")

    @model_validator(mode="after")
    def _stays_inside(self) -> OperatingPointReference:
        path = PurePosixPath(self.path)
        if self.path != self.path.strip() or (not path.is_absolute() and ".." in path.parts):
            raise ValueError("path is relative to the artifact and stays inside it, or absolute")
        return self


class ModelBinding(Node):
    """Which deployment answers for a consumer, and what it has to be able to do."""

    absent: ClassVar[Mapping[str, str]] = {"adapter": "the card of a model says how it is asked"}

    deployment: str = Field(min_length=1)
    contract: str = Field(min_length=1)
    head: str | None = None
    mapping_path: str | None = None
    pair_scorer: PairScorerSelection | None = None
    operating_point: OperatingPointReference | None = None


class Admission(Node):
    """How many questions a deployment is asked at once; more wait, and no longer than the time and the number given."""

    max_concurrency: int | None = Field(default=None, ge=0)
    max_queue: int | None = Field(default=None, ge=0)
    queue_timeout_ms: int | None = Field(default=None, ge=0)
    on_overflow: Annotated[str, AfterValidator(_on_overflow)] | None = None


class DecisionModelBinding(Node):
    deployment: str = Field(min_length=1)
