"""What `nvidia-smi --query-gpu` and `--query-compute-apps` printed on real machines, read; and what is said without either.

The rows were printed by drivers of these machines and posted in public: a GeForce RTX 5060 Ti (580.178.04), eight V100-SXM2-32GB
with work on the seventh, an A6000 beside a 3090, a Tesla P100 (418.87.01) and processes of a GPU host that a container cannot
name. UUIDs are shortened.
"""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from headway.doctor.case import Case
from headway.doctor.collect.assemble import as_context
from headway.doctor.collect.gpus import gpus_part
from headway.doctor.collect.nvidia_smi import gpus_of
from headway.doctor.diagnosis import diagnose
from headway.doctor.evidence.log.log import Log
from headway.doctor.facts.device import device_of
from headway.doctor.facts.launch import launch_of
from headway.doctor.rules.catalogue import rules

_RTX_5060 = """\
name, memory.total [MiB], memory.used [MiB], utilization.gpu [%], driver_version, compute_cap, pstate
NVIDIA GeForce RTX 5060 Ti, 16311 MiB, 1 MiB, 0 %, 580.178.04, 12.0, P8
"""
_V100S = """\
index, name, memory.total [MiB], memory.used [MiB], utilization.gpu [%], temperature.gpu
0, Tesla V100-SXM2-32GB, 32768 MiB, 4 MiB, 0 %, 35
5, Tesla V100-SXM2-32GB, 32764 MiB, 4 MiB, 0 %, 37
6, Tesla V100-SXM2-32GB, 32768 MiB, 13928 MiB, 100 %, 51
"""
_TWO = """\
index, name, memory.used [MiB], utilization.gpu [%], power.draw [W]
0, NVIDIA GeForce RTX 3090, 1 MiB, 57 %, 46.20 W
1, NVIDIA RTX A6000, 38742 MiB, 100 %, 294.44 W
"""
_P100 = """\
name, pci.bus_id, serial, uuid, driver_version, count, index, fan.speed [%], memory.total [MiB], memory.used [MiB], utilization.gpu [%], power.draw [W]
Tesla P100-PCIE-16GB, 00000000:16:00.0, 0320218166179, GPU-eb5e8723, 418.87.01, 4, 2, [Not Supported], 16280 MiB, 1628 MiB, 20 %, 26.26 W
"""
_SHARED = """\
uuid, name, memory.total [MiB], memory.used [MiB], utilization.gpu [%]
GPU-0f55d4e3, NVIDIA A800-SXM4-80GB, 81920 MiB, 64217 MiB, [N/A]
GPU-fe1fcfe7, NVIDIA A800-SXM4-80GB, 81920 MiB, 49116 MiB, [N/A]
"""
_SHARED_PROCESSES = """\
gpu_uuid, pid, process_name, used_gpu_memory [MiB]
GPU-0f55d4e3, 5930, [Not Found], 64208 MiB
GPU-fe1fcfe7, 50579, [Not Found], 30132 MiB
GPU-fe1fcfe7, 83527, ./build/bin/llama-server, 18964 MiB
"""
_NO_DRIVER = (
    "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver. Make sure that the latest NVIDIA driver is installed and running.\n"
)


def test_a_card_with_its_driver_and_capability() -> None:
    assert gpus_of(_RTX_5060) == {
        "driver": "580.178.04",
        "gpus": [{"index": 0, "name": "NVIDIA GeForce RTX 5060 Ti", "memory_gib": 15.93, "used_gib": 0.0, "capability": "12.0", "util_percent": 0}],
    }


def test_several_cards_keep_their_numbers() -> None:
    cards = gpus_of(_V100S)["gpus"]
    assert [(card["index"], card["memory_gib"], card["used_gib"], card["util_percent"]) for card in cards] == [(0, 32.0, 0.0, 0), (5, 32.0, 0.0, 0), (6, 32.0, 13.6, 100)]


def test_columns_that_were_not_asked_for_are_unknown() -> None:
    found = gpus_of(_TWO)
    assert "driver" not in found
    assert found["gpus"][1] == {"index": 1, "name": "NVIDIA RTX A6000", "used_gib": 37.83, "util_percent": 100}


def test_what_the_driver_does_not_tell_is_left_out() -> None:
    card = gpus_of(_P100)["gpus"][0]
    assert card == {"index": 2, "name": "Tesla P100-PCIE-16GB", "memory_gib": 15.9, "used_gib": 1.59, "util_percent": 20}
    assert "util_percent" not in gpus_of(_SHARED)["gpus"][0]


def test_processes_stand_at_their_cards() -> None:
    first, second = gpus_of(_SHARED, _SHARED_PROCESSES)["gpus"]
    assert first["processes"] == [{"pid": 5930, "used_gib": 62.7}]
    assert second["processes"] == [{"pid": 50579, "used_gib": 29.43}, {"pid": 83527, "used_gib": 18.52, "name": "./build/bin/llama-server"}]


def test_no_processes_are_known_to_be_none() -> None:
    header = _SHARED_PROCESSES.splitlines()[0]
    assert gpus_of(_SHARED, header)["gpus"][0]["processes"] == []


def test_rules_read_the_same_facts() -> None:
    context = as_context({"host": gpus_of(_SHARED, _SHARED_PROCESSES)})
    device = device_of(Log(), context, launch_of(Log(), context))
    assert device.kind == "cuda"
    assert device.gpus[1].processes == ((50579, "", 29.43), (83527, "./build/bin/llama-server", 18.52))
    assert round(device.gpus[1].free or 0, 2) == 32.04


def test_a_machine_without_any_sign_of_a_card_has_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert gpus_part(tmp_path) == {"gpus": []}


@pytest.mark.parametrize(("said", "status"), [(_NO_DRIVER, 9), ("No devices were found\n", 6), (None, 0)])
def test_a_card_of_which_nobody_can_tell_is_no_missing_card(said: str | None, status: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "proc/driver/nvidia").mkdir(parents=True)
    (tmp_path / "proc/driver/nvidia/version").write_text("NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.90.07\n")
    if said is not None:
        (tmp_path / "nvidia-smi").write_text(f'#!/bin/sh\nprintf "%s" "{said}"\nexit {status}\n')
        (tmp_path / "nvidia-smi").chmod(stat.S_IRWXU)
    monkeypatch.setenv("PATH", str(tmp_path))
    part = gpus_part(tmp_path)
    assert "gpus" not in part
    assert part["gpus_unknown"].startswith("pynvml is not installed; nvidia-smi ")
    report = diagnose(Case(Log(), as_context({"host": part})), rules())
    assert not any(finding.is_answer for finding in report.findings)
    assert any(part["gpus_unknown"] in words.en for words in report.abstained)
