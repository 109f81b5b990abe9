"""examples/helm: every document is one of Kubernetes, and what stands in it exists."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import helm_python
import kubernetes_validate
import pytest
import yaml

from headway.flags.environment import KNOWN
from tests.examples.container_commands import accepted
from tests.examples.real_routes import is_open_page
from tests.examples.rendered_chart import (
    CHART,
    COMPONENTS,
    NAMES,
    NAMESPACE,
    container,
    documents,
    kind,
    pod,
    render,
    values_of,
)

OLDEST, NEWEST = "1.27", "1.37"


@pytest.mark.parametrize("name", NAMES)
def test_helm_finds_nothing_to_complain_about(name: str) -> None:
    found = helm_python.lint(CHART, values_of(name), strict=True, kube_version=f"v{OLDEST}.0")
    assert found["errors"] == []
    assert [each for each in found["messages"] if each["severity"] > 1] == []


@pytest.mark.parametrize("version", [OLDEST, NEWEST])
@pytest.mark.parametrize("name", NAMES)
def test_every_document_is_one_of_kubernetes(name: str, version: str) -> None:
    for document in documents(name):
        assert document["metadata"]["namespace"] == NAMESPACE
        if document["kind"] != "ServiceMonitor":  # the Prometheus operator's; a test of its own below
            kubernetes_validate.validate(document, version, strict=True)


def test_the_oldest_version_is_the_one_that_the_chart_names() -> None:
    assert yaml.safe_load((CHART / "Chart.yaml").read_text())["kubeVersion"] == f">={OLDEST}.0-0"


@pytest.mark.parametrize("name", NAMES)
def test_commands_are_accepted_and_end_in_time(name: str, tmp_path: Path) -> None:
    (tmp_path / "models.yaml").write_text(kind(name, "ConfigMap")["runtime"]["data"]["models.yaml"])
    for deployment in kind(name, "Deployment").values():
        runs, spec = container(deployment), pod(deployment)
        found = accepted([*runs["command"], *(word.replace("/etc/headway/models.yaml", str(tmp_path / "models.yaml")) for word in runs["args"])])
        assert found.host in ("0.0.0.0", None)
        assert found.port in (runs["ports"][0]["containerPort"], None)
        program, seconds = runs["lifecycle"]["preStop"]["exec"]["command"]
        assert program == "sleep"
        assert float(seconds) + found.ending_seconds < spec["terminationGracePeriodSeconds"]


@pytest.mark.parametrize("component", COMPONENTS)
def test_probes_ask_pages_that_exist(component: str) -> None:
    runs = container(kind("defaults", "Deployment")[component])
    for probe in ("startupProbe", "readinessProbe", "livenessProbe"):
        asked = runs[probe]["httpGet"]
        assert is_open_page(component, asked["port"], asked["path"]), probe
        assert asked["port"] in {port["name"] for port in runs["ports"]}
    startup = runs["startupProbe"]["periodSeconds"] * runs["startupProbe"]["failureThreshold"]
    assert startup == helm_values()[component]["startupSeconds"]
    assert startup < kind("defaults", "Deployment")[component]["spec"]["progressDeadlineSeconds"]


def helm_values() -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((CHART / "values.yaml").read_text())
    return found


@pytest.mark.parametrize("name", NAMES)
def test_what_is_named_exists(name: str) -> None:
    """Selectors find pods, ports their names, volumes their mounts."""
    deployments = kind(name, "Deployment")
    for component, deployment in deployments.items():
        labels = deployment["spec"]["template"]["metadata"]["labels"]
        ports = {port["name"]: port["containerPort"] for port in container(deployment)["ports"]}
        service = kind(name, "Service")[component]["spec"]
        selectors = [deployment["spec"]["selector"]["matchLabels"], service["selector"]]
        selectors += [each["spec"]["selector"]["matchLabels"] for of in ("PodDisruptionBudget", "ServiceMonitor") if (each := kind(name, of).get(component))]
        assert all(selector.items() <= labels.items() for selector in selectors)
        assert {port["targetPort"]: port["port"] for port in service["ports"]} == ports
        mounted = [mount["name"] for mount in container(deployment)["volumeMounts"]]
        volumes = {volume["name"]: volume for volume in pod(deployment)["volumes"]}
        assert sorted(mounted) == sorted(volumes)
        if "config" in volumes:
            assert volumes["config"]["configMap"]["name"] == kind(name, "ConfigMap")[component]["metadata"]["name"]


@pytest.mark.parametrize("name", NAMES)
def test_pods_have_no_rights_and_write_only_where_a_volume_is(name: str) -> None:
    for deployment in kind(name, "Deployment").values():
        spec, runs = pod(deployment), container(deployment)
        assert spec["automountServiceAccountToken"] is False
        assert spec["enableServiceLinks"] is False  # its variables look like Headway's own (VLLM_PORT)
        assert spec["securityContext"]["runAsNonRoot"] is True
        assert spec["securityContext"]["runAsUser"] == 10001  # the user of the image
        assert runs["securityContext"] == {
            "allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True, "capabilities": {"drop": ["ALL"]},
        }  # fmt: skip
        writable = tuple(mount["mountPath"] + "/" for mount in runs["volumeMounts"] if not mount.get("readOnly"))
        variables = {each["name"]: each.get("value", "") for each in runs["env"]}
        folders = [variables[each] for each in ("HOME", "HEADWAY_CACHE", "HF_HOME", "VLLM_SR_STATE_ROOT_DIR") if each in variables]
        assert [folder for folder in folders if not (folder + "/").startswith(writable)] == []
        assert [each for each in variables if each.startswith("VLLM_") and each not in {*KNOWN, "VLLM_SRUN_API_KEY", "VLLM_SR_STATE_ROOT_DIR"}] == []


def test_service_monitors_ask_ports_and_pages_that_exist() -> None:
    monitors = kind("values-fleet", "ServiceMonitor")
    assert monitors.keys() == set(COMPONENTS)
    for component, monitor in monitors.items():
        assert monitor["apiVersion"] == "monitoring.coreos.com/v1"
        assert monitor["metadata"]["labels"].items() >= values_of("values-fleet")["monitoring"]["labels"].items()
        labels = kind("values-fleet", "Service")[component]["metadata"]["labels"]
        assert labels[monitor["spec"]["jobLabel"]] == "headway"  # the job that examples/prometheus/alerts.yml asks for
        [endpoint] = monitor["spec"]["endpoints"]
        assert endpoint.keys() == {"port", "path", "interval"}
        assert is_open_page(component, endpoint["port"], endpoint["path"])
        assert endpoint["port"] in {port["name"] for port in container(kind("values-fleet", "Deployment")[component])["ports"]}


def test_keys_reach_those_who_ask_for_them_and_those_who_send_them() -> None:
    def secrets(component: str) -> dict[str, Any]:
        env = container(kind("values-fleet", "Deployment")[component])["env"]
        return {each["name"]: each["valueFrom"]["secretKeyRef"] for each in env if "valueFrom" in each}

    assert secrets("router") == {**secrets("engine"), **secrets("runtime")}
    assert secrets("engine") == {"VLLM_API_KEY": {"name": "headway", "key": "engine"}}


def test_budgets_are_there_where_a_pod_may_go() -> None:
    assert kind("defaults", "PodDisruptionBudget").keys() == {"engine", "router"}  # of one replica, a budget would block every drain
    assert kind("values-fleet", "PodDisruptionBudget").keys() == set(COMPONENTS)


@pytest.mark.parametrize(
    ("values", "named"),
    [
        ({"engine": {"replica": 3}}, "replica"),
        ({"engine": {"replicas": 0}}, "/engine/replicas"),
        ({"engine": {"shutdownTimeout": "60s"}}, "/engine/shutdownTimeout"),
        ({"models": {"hub": "hub.example.com"}}, "/models/hub"),
        ({"runtime": {"models": []}}, "/runtime/models"),
        ({"runtime": {"models": [{"model": "x"}]}}, "/runtime/models/0"),
        ({"models": {"volume": {"emptyDir": {}, "hostPath": {}}}}, "/models/volume"),
    ],
)
def test_values_that_cannot_be_meant_are_refused(values: dict[str, Any], named: str) -> None:
    with pytest.raises(helm_python.HelmValuesError, match=re.escape(named)):
        render(values)


def test_the_notes_name_what_was_made() -> None:
    notes = render({})["NOTES.txt"]
    made = {f"{each['kind'].lower()}/{each['metadata']['name']}" for each in documents("defaults")}
    named = set(re.findall(r"(?:deployment|service)/[a-z-]+", notes))
    assert named
    assert named <= made


def test_the_check_of_pages_would_see_a_mistake() -> None:
    wrong = [("engine", "http", "/ready"), ("runtime", "http", "/live"), ("router", "http", "/healthz"), ("router", "metrics", "/metrics2"), ("engine", "http", "/load")]
    assert [each for each in wrong if is_open_page(*each)] == []
