"""The configuration of a running router changes: by its file, however that is written. What cannot serve changes nothing."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml

from tests.e2e.router_process import RunningRouter, backend, started_router, two_models
from tests.router.upstream.scripted_backend import DONE, answers, chunk, streams

_SUCCESS = "vsr_config_last_reload_successful"


@pytest.fixture
def router(tmp_path: Path) -> Iterator[RunningRouter]:
    with backend(answers()) as one, started_router(tmp_path, two_models(one.endpoint, one.endpoint)) as found:
        yield found


def changed(router: RunningRouter, keyword: str) -> str:
    document = yaml.safe_load(router.config.read_text())
    document["routing"]["signals"]["keywords"][0]["keywords"] = [keyword]
    return yaml.safe_dump(document, sort_keys=False)


def by_rename(path: Path, text: str) -> None:
    beside = path.with_name("beside.yaml")
    beside.write_text(text)
    beside.replace(path)


def decision_of(router: RunningRouter, text: str) -> str | None:
    return router.chat(text).headers.get("x-vsr-selected-decision")


def test_a_new_file_serves_and_all_entry_points_switch(router: RunningRouter) -> None:
    assert decision_of(router, "python") == "code"
    by_rename(router.config, changed(router, "rust"))
    router.until(lambda: decision_of(router, "rust") == "code")
    assert decision_of(router, "python") is None
    assert router.preview("rust").json()["decision_result"]["decision_name"] == "code"
    assert router.metric("vsr_config_generation") == 2
    assert router.chat("rust").headers["x-vsr-config-version"] == "2"


def test_a_bad_file_changes_nothing_and_is_seen(router: RunningRouter) -> None:
    good = router.config.read_text()
    for bad in ("", "version: v0.3\n  broken: [", good.replace("large", "nobody", 1), "\x00"):
        by_rename(router.config, bad)
        router.until(lambda: router.metric(_SUCCESS) == 0)
        assert decision_of(router, "python") == "code"
        status = router.get("/api/v1/config/hash").json()
        assert status["activation_status"] == "failed"
        assert status["error"]
        by_rename(router.config, good)
        router.until(lambda: router.metric(_SUCCESS) == 1)
    assert router.get("/ready").status_code == 200
    assert router.metric("vsr_config_generation") == 1


def test_what_was_removed_is_gone(router: RunningRouter) -> None:
    document = yaml.safe_load(router.config.read_text())
    document["routing"] = {}
    by_rename(router.config, yaml.safe_dump(document))
    router.until(lambda: decision_of(router, "python") is None)
    assert router.preview("python").json()["decision_result"]["matched_signals"] == {}


def test_of_two_changes_at_once_the_later_wins(router: RunningRouter) -> None:
    for first, second in (("one", "two"), ("three", "four"), ("five", "six")):
        by_rename(router.config, changed(router, first))
        time.sleep(0.05)
        by_rename(router.config, changed(router, second))
        router.until(lambda word=second: decision_of(router, word) == "code")  # type: ignore[misc]
        assert decision_of(router, first) is None


def test_a_bad_change_right_after_a_good_one_does_not_take_it_away(router: RunningRouter) -> None:
    by_rename(router.config, changed(router, "five"))
    time.sleep(0.08)
    by_rename(router.config, "not: valid")
    router.until(lambda: router.metric(_SUCCESS) == 0)
    router.until(lambda: decision_of(router, "five") == "code")
    assert router.get("/api/v1/config/hash").json()["activation_status"] == "failed"


def test_a_request_keeps_the_configuration_that_it_began_with(tmp_path: Path) -> None:
    slow = streams(*[chunk(f"{word} ") for word in range(30)], chunk(finish="stop"), DONE, pause=0.05)
    with backend(slow) as one, started_router(tmp_path, two_models(one.endpoint, one.endpoint)) as router:
        lines: list[str] = []

        def read() -> None:
            body = {"model": "auto", "messages": [{"role": "user", "content": "python"}], "stream": True}
            with httpx.stream("POST", f"{router.url}/v1/chat/completions", json=body, timeout=30, trust_env=False) as answer:
                lines.extend(answer.iter_lines())

        reader = threading.Thread(target=read)
        reader.start()
        router.until(lambda: len(one.asked) == 1)
        document = two_models("127.0.0.1:9", "127.0.0.1:9")
        by_rename(router.config, yaml.safe_dump(document))
        router.until(lambda: router.metric("vsr_config_generation") == 2)
        assert router.metric("vsr_config_retired_generations") == 1
        reader.join(20)
        assert "data: [DONE]" in lines
        router.until(lambda: router.metric("vsr_config_retired_generations") == 0)


class Traffic:
    """Requests on several threads until `stop`; what went wrong is kept."""

    def __init__(self, router: RunningRouter, pause: float, threads: int = 4) -> None:
        self.failures: list[str] = []
        self.done = 0
        self._router, self._pause, self._stop = router, pause, threading.Event()
        self._threads = [threading.Thread(target=self._ask, args=(number,)) for number in range(threads)]

    def __enter__(self) -> Traffic:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join(30)

    def _ask(self, number: int) -> None:
        with httpx.Client(trust_env=False, timeout=30) as client:
            while not self._stop.wait(self._pause):
                body: dict[str, Any] = {"model": "auto", "messages": [{"role": "user", "content": f"python {number}"}]}
                try:
                    answer = client.post(f"{self._router.url}/v1/chat/completions", json=body)
                except httpx.TransportError as error:
                    self.failures.append(repr(error))
                    continue
                self.done += 1
                version, decision = answer.headers.get("x-vsr-config-version"), answer.headers.get("x-vsr-selected-decision")
                if answer.status_code != 200 or version is None or decision not in ("code", "other"):
                    self.failures.append(f"{answer.status_code} {version} {decision} {answer.text[:200]}")


@pytest.mark.long
def test_thirty_replacements_under_load_lose_no_request(tmp_path: Path) -> None:
    """E15: rename, slow write in place and symbolic link, with valid and invalid content, while requests run."""
    with backend(answers()) as one:
        first = two_models(one.endpoint, one.endpoint)
        other = two_models(one.endpoint, one.endpoint)
        other["routing"]["decisions"][0]["name"] = "other"
        texts = [yaml.safe_dump(first), yaml.safe_dump(other), yaml.safe_dump(first)[:200], "", yaml.safe_dump(other) + "\nunknown: 1\n"]
        with started_router(tmp_path, first) as router, Traffic(router, 0.08) as traffic:
            before = _rss(router)
            for turn in range(30):
                text = texts[turn % len(texts)]
                if turn % 3 == 0:
                    by_rename(router.config, text)
                elif turn % 3 == 1:
                    _write_slowly(router.config, text)
                else:
                    _by_link(router.config, text, turn)
                time.sleep(0.25)
            by_rename(router.config, yaml.safe_dump(other))
            router.until(lambda: decision_of(router, "python") == "other")
            router.until(lambda: router.metric("vsr_config_retired_generations") == 0)
            after = _rss(router)
        assert traffic.failures == []
        assert traffic.done > 200
        assert after < before * 1.25


def _write_slowly(path: Path, text: str) -> None:
    with path.open("w") as out:
        for start in range(0, len(text), 200):
            out.write(text[start : start + 200])
            out.flush()
            time.sleep(0.05)


def _by_link(path: Path, text: str, turn: int) -> None:
    target = path.with_name(f"version-{turn}.yaml")
    target.write_text(text)
    link = path.with_name("link")
    link.symlink_to(target.name)
    link.replace(path)


def _rss(router: RunningRouter) -> float:
    return router.metric("process_resident_memory_bytes")
