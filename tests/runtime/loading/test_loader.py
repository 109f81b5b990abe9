"""The load pipeline around toy packages: stages and their reasons, what is refused and how, what becomes of settings."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from headway.errors import ConfigError, HeadwayError, PackageError, SelfCheckError
from headway.runtime.execution.device_thread import DeviceThread
from headway.runtime.execution.execution_settings import ExecutionSettings
from headway.runtime.execution.scheduler import Scheduler
from headway.runtime.loaded_model import LoadedModel
from headway.runtime.loading import verification
from headway.runtime.loading.load_failure import failure_reason, is_final
from headway.runtime.loading.load_thread import Retries, load_all
from headway.runtime.loading.loader import ModelLoader
from headway.runtime.loading.model_entry import ModelEntry
from headway.runtime.loading.package_source import Source, Stores
from headway.runtime.package import Package
from headway.runtime.plugins import PluginSet
from headway.runtime.selfcheck.golden_reference import beside, write_reference
from headway.runtime.served_model import Readiness, ServedModel
from headway.runtime.settings import WorkerSettings
from tests.runtime.loading.test_load_thread import FakeClock
from tests.runtime.toy_plugins import CARD, WEIGHTS, OldGpu, ToyFamily, tensor_file, toy_plugins, write_toy


class Watched(ServedModel):
    """Remembers every state that it was in."""

    def __init__(self, entry: ModelEntry):
        self.seen: list[Readiness] = []
        super().__init__(entry, "toy")

    def __setattr__(self, name: str, value: Any) -> None:
        if name == "readiness":
            self.seen.append(value)
        super().__setattr__(name, value)


class World:
    def __init__(self, device: DeviceThread, cache: Path):
        self.device = device
        self.cache = cache
        self.schedulers: list[Scheduler] = []

    def loader(self, plugins: PluginSet | None = None, get: Callable[..., Source] | None = None, **settings: Any) -> ModelLoader:
        def start(
            served: ServedModel, model: LoadedModel, execution: ExecutionSettings, is_fault: Callable[[BaseException], bool]
        ) -> Scheduler:
            self.schedulers.append(Scheduler(model, execution, self.device))
            return self.schedulers[-1]

        more = {} if get is None else {"get": get}
        worker = WorkerSettings(cache_dir=str(self.cache), **settings)
        return ModelLoader(plugins or toy_plugins(), worker, self.device, start, **more)

    def load(self, entry: ModelEntry, plugins: PluginSet | None = None, **settings: Any) -> Watched:
        served = Watched(entry)
        self.loader(plugins, **settings).load(served)
        return served

    def failure(self, entry: ModelEntry, plugins: PluginSet | None = None, **settings: Any) -> HeadwayError:
        with pytest.raises(HeadwayError) as caught:
            self.load(entry, plugins, **settings)
        return caught.value


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    device = DeviceThread()
    yield World(device, tmp_path / "cache")
    assert device.close()


@pytest.fixture
def toy(tmp_path: Path) -> Callable[..., ModelEntry]:
    def make(entry: Mapping[str, Any] | None = None, **fields: Any) -> ModelEntry:
        return ModelEntry(str(write_toy(tmp_path / "toy", **fields)), **(entry or {}))

    return make


def test_the_stages_and_what_is_known_at_the_end(world: World, toy: Callable[..., ModelEntry]) -> None:
    served = world.load(toy(licence="mit"))
    assert served.seen == [
        Readiness("starting"),
        Readiness("loading", "resolving the model"),
        Readiness("loading", "verifying the package"),
        Readiness("loading", "loading weights on cpu"),
        Readiness("loading", "loading weights on cpu: 1 B of 2 B"),
        Readiness("warming"),
        Readiness("warming", "running the golden check"),
        Readiness("ready"),
    ]
    running = served.running
    assert running is not None
    assert (running.family, running.placed.engine, running.placed.device, running.placed.accelerator_validated) == ("toy", "native", "cpu", True)
    assert running.identity.licence == "mit"
    assert running.identity.repo is None
    assert len(running.identity.model_sha256) == 64
    assert served.golden.status == "unverified"
    assert served.golden.reason is None
    assert [plugin.name for plugin in served.plugins] == ["toy", "native", "cpu"]
    assert running.model.threads == {"device"}  # type: ignore[attr-defined]


def test_the_identity_follows_the_bytes(world: World, toy: Callable[..., ModelEntry]) -> None:
    first = world.load(toy()).running
    again = world.load(toy()).running
    entry = toy()
    (Path(entry.model) / WEIGHTS).write_bytes(tensor_file(elements=1023))
    changed = world.load(entry).running
    assert first
    assert again
    assert changed
    assert first.identity.model_sha256 == again.identity.model_sha256 != changed.identity.model_sha256


def test_a_device_that_is_not_there_fails_before_anything_is_fetched(world: World) -> None:
    asked: list[ModelEntry] = []

    def get(entry: ModelEntry, stores: Stores, progress: Any) -> Source:
        asked.append(entry)
        raise AssertionError("must not be asked")

    plugins = toy_plugins({"absent": "AbsentGpu", "cpu": "headway.runtime.accelerators.cpu:Cpu"})
    with pytest.raises(HeadwayError) as caught:
        world.loader(plugins, get).load(Watched(ModelEntry("acme/tiny", revision="a" * 40, device="absent:0")))
    assert failure_reason(caught.value).startswith("PlacementError: device not available: absent:0")
    assert asked == []


def test_no_family(world: World, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    error = world.failure(ModelEntry(str(tmp_path / "other")))
    assert "no family recognizes the package" in failure_reason(error)
    assert is_final(error)
    assert "asked: toy" in error.message


def test_a_family_that_cannot_be_imported_is_named_when_nobody_recognizes(world: World, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    plugins = toy_plugins(families={"gone": "no.such.module:Family", "toy": "ToyFamily"})
    assert "'gone' of headway.families (no.such.module:Family) cannot be imported" in world.failure(ModelEntry(str(tmp_path / "other")), plugins).message
    assert world.load(ModelEntry(str(write_toy(tmp_path / "toy"))), plugins).is_ready


def test_a_family_that_fails_on_a_package_counts_as_one_that_said_no(
    world: World, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    plugins = toy_plugins(families={"clumsy": "ClumsyFamily", "toy": "ToyFamily"})
    with caplog.at_level("ERROR", "headway"):
        assert world.load(ModelEntry(str(write_toy(tmp_path / "toy"))), plugins).family == "toy"
    assert "the plug-in 'clumsy' failed on it: ZeroDivisionError" in caplog.text
    (tmp_path / "other").mkdir()
    assert "'clumsy' failed on it" in world.failure(ModelEntry(str(tmp_path / "other")), plugins).message


def test_damage_that_a_family_sees_is_told(world: World, toy: Callable[..., ModelEntry]) -> None:
    entry = toy()
    (Path(entry.model) / CARD).write_text("{")
    error = world.failure(entry)
    assert error.reason == "invalid_json"
    assert is_final(error)


def test_a_forced_family_is_not_asked_whether_it_recognizes(world: World, tmp_path: Path) -> None:
    folder = write_toy(tmp_path / "toy")
    assert world.load(ModelEntry(str(folder), family="toy")).family == "toy"
    error = world.failure(ModelEntry(str(folder), family="other"))
    assert "no family 'other'; available: toy" in error.message


def test_a_damaged_package_is_final(world: World, toy: Callable[..., ModelEntry]) -> None:
    error = world.failure(toy(fault="describe"))
    assert failure_reason(error) == "PackageError: the toy is broken"
    assert is_final(error)
    assert world.failure(toy(files=["absent"])).reason == "missing_file"


@pytest.mark.parametrize(
    ("name", "small_bytes"),
    [(CARD, 1 << 20), (WEIGHTS, 1), ("README.md", 1 << 20)],
    ids=["a small file", "a large file", "a small file that is not loaded"],
)
def test_recorded_digests_are_compared(
    name: str, small_bytes: int, world: World, toy: Callable[..., ModelEntry], monkeypatch: pytest.MonkeyPatch
) -> None:
    entry = toy()
    (Path(entry.model) / "README.md").write_text("x")
    monkeypatch.setattr(verification, "SMALL_BYTES", small_bytes)

    def get(entry: ModelEntry, stores: Stores, progress: Any) -> Source:
        return Source(Package(entry.model, Path(entry.model)), {name: "0" * 64})

    with pytest.raises(HeadwayError) as caught:
        world.loader(None, get).load(Watched(entry))
    assert f"a file hash does not match: {name}" in failure_reason(caught.value)
    assert is_final(caught.value)


def test_a_licence_that_the_family_finds(world: World, toy: Callable[..., ModelEntry]) -> None:
    error = world.failure(toy(licence="cc-by-nc-4.0"))
    assert "a licence must be accepted" in failure_reason(error)
    assert world.load(toy(licence="cc-by-nc-4.0"), accept_licence=("cc-by-nc-4.0",)).is_ready


def test_options_reach_the_family_and_unknown_ones_do_not(world: World, toy: Callable[..., ModelEntry]) -> None:
    ToyFamily.placements.clear()
    world.load(toy({"options": {"colour": "red", "dtype": "float32"}}), base_path="/base")
    [placement] = ToyFamily.placements
    assert placement.options == {"colour": "red", "base_path": "/base"}
    assert (placement.device, placement.dtype, placement.enable_shared_context) == ("cpu", "float32", False)
    error = world.failure(toy({"options": {"size": 1}}))
    assert isinstance(error, ConfigError)
    assert "has no option size; it has base_path, colour, dtype" in error.message
    assert "this model offers float32" in world.failure(toy({"options": {"dtype": "bfloat16"}})).message


def test_a_wrong_count_of_parameters_is_a_damaged_package(world: World, toy: Callable[..., ModelEntry]) -> None:
    error = world.failure(toy(fault="count"))
    assert isinstance(error, PackageError)
    assert "3 parameters, its files declare 2" in error.message


def test_fp8_weights_on_devices_without_it(world: World, toy: Callable[..., ModelEntry]) -> None:
    entry = toy()
    (Path(entry.model) / WEIGHTS).write_bytes(tensor_file("F8_E4M3"))
    for plugins in (toy_plugins(), toy_plugins({"old": "OldGpu"})):
        error = world.failure(entry, plugins)
        assert "FP8 weights need an NVIDIA GPU of compute capability 8.9" in failure_reason(error)
        assert is_final(error)


@pytest.mark.parametrize("capability", ["lapack", "nvfp4"])
def test_a_capability_that_the_device_lacks(capability: str, world: World, toy: Callable[..., ModelEntry]) -> None:
    error = world.failure(toy(needs=[capability]), toy_plugins({"old": "OldGpu"}))
    assert is_final(error)
    assert error.reason == "lacks_capability"


def test_the_budget_of_the_entry_wins_over_that_of_the_process(world: World, toy: Callable[..., ModelEntry]) -> None:
    assert "does not fit, out of memory" in failure_reason(world.failure(toy(), memory_budget=1.0))
    assert world.load(toy({"memory_budget_gib": 3.0}), memory_budget=1.0).is_ready


@pytest.mark.parametrize(("fault", "says"), [("unstable", "two runs of the same request differ"), ("not_finite", "")])
def test_a_self_check_that_fails_is_final(fault: str, says: str, world: World, toy: Callable[..., ModelEntry]) -> None:
    error = world.failure(toy(fault=fault))
    assert isinstance(error, SelfCheckError)
    assert says in error.message
    assert is_final(error)


def test_recorded_answers_match_or_fail(world: World, toy: Callable[..., ModelEntry]) -> None:
    entry = toy()
    served = world.load(entry)
    assert served.running is not None
    sha = served.running.identity.model_sha256
    from headway.runtime.selfcheck.golden import Strictness, golden_answers
    from headway.runtime.selfcheck.golden_requests import golden_requests

    model = served.running.model
    answers = golden_answers(model, golden_requests(model.facts, served.running.surfaces), Strictness(0.0))
    path = beside(Package("toy", Path(entry.model)))
    write_reference(path, sha, "cpu", answers, {})
    matched = world.load(entry)
    assert (matched.golden.status, matched.golden.checked, matched.golden.reference) == ("matched", 2, path.name)
    answers["embeddings"]["data"][0]["embedding"][0] *= 1.01
    write_reference(path, sha, "cpu", answers, {})
    failed = Watched(entry)
    load_all([failed], world.loader().load, Retries(5, 5.0), FakeClock())
    assert failed.golden.status == "failed"
    assert failed.readiness.reason is not None
    assert failed.readiness.reason.startswith("SelfCheckError: answers differ from those recorded in")


def test_kernel_choices_that_are_not_applied(
    world: World, toy: Callable[..., ModelEntry], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    entry, plugins = toy(), toy_plugins({"old": "OldGpu"})
    running = world.load(entry, plugins).running
    assert running is not None
    write_reference(beside(Package("toy", Path(entry.model))), running.identity.model_sha256, "old", {}, {"FLA": "0.5.2"})
    monkeypatch.setattr(OldGpu, "found_kernels", {"FLA": "0.4.1"})
    with caplog.at_level("WARNING", "headway"):
        served = world.load(entry, plugins)
    assert served.golden.status == "unverified"
    assert served.is_ready
    assert served.golden.reason == "kernel choices not applied: they were recorded with FLA 0.5.2, not 0.4.1"
    assert "toy runs without its recorded kernel choices: they were recorded with FLA 0.5.2, not 0.4.1" in caplog.text


def test_who_leaks_gets_passes_of_its_own(world: World, toy: Callable[..., ModelEntry], caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level("WARNING", "headway"):
        leaking = world.load(toy(fault="leak")).running
    assert leaking is not None
    assert leaking.settings.share_forwards is False
    assert "rows alone and in a batch differ" in caplog.text
    plain = world.load(toy()).running
    rounding = world.load(toy(fault="rounding")).running
    strict = world.load(toy(fault="rounding"), batch_invariant=True).running
    assert plain
    assert rounding
    assert strict
    assert (plain.settings.share_forwards, rounding.settings.share_forwards, strict.settings.share_forwards) == (True, True, False)


def test_engine_parameters_of_the_entry_win(world: World, toy: Callable[..., ModelEntry]) -> None:
    own = world.load(toy({"enable_shared_context": False, "batch_window_ms": 0.0, "max_num_seqs": 3}),
                     enable_shared_context=True, batch_window_ms=9.0, max_num_seqs=7, max_queue=5).running  # fmt: skip
    common = world.load(toy(), enable_shared_context=True, batch_window_ms=9.0, max_num_seqs=7).running
    assert own
    assert common
    assert (own.settings.enable_shared_context, own.settings.batch_window_ms, own.settings.max_num_seqs, own.settings.max_queue) == (False, 0.0, 3, 5)
    assert (common.settings.enable_shared_context, common.settings.batch_window_ms, common.settings.max_num_seqs) == (True, 9.0, 7)


@pytest.mark.parametrize(
    ("fault", "reason"),
    [("raises", "RuntimeError: the driver is busy"), ("memory", "MemoryError: does not fit, out of memory: no message")],
)
def test_what_may_pass_is_tried_again(fault: str, reason: str, world: World, toy: Callable[..., ModelEntry]) -> None:
    served = Watched(toy(fault=fault))
    clock = FakeClock()
    load_all([served], world.loader().load, Retries(3, 5.0), clock)
    assert clock.sleeps == [5, 10]
    assert Readiness("loading", f"retrying after {reason} (attempt 3 of 3)") in served.seen
    assert served.readiness == Readiness("failed", reason)
    assert served.running is None
