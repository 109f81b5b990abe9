"""Words on the command line become values of flags."""

from __future__ import annotations

from typing import Any

import pytest

from headway.cli.flag_index import FlagIndex
from headway.cli.parse import parse_words, values_from_file
from headway.errors import ConfigError, NotBuiltError
from headway.flags.flag import Flag
from headway.flags.values import read_size

INDEX = FlagIndex(
    (
        Flag("name", "text", None, "Text."),
        Flag("count", "int", 1, "Number.", aliases=("-c", "number")),
        Flag("rate", "float", 0.5, "Rate."),
        Flag("size", "size", None, "Size.", words={"auto": -1}),
        Flag("on", "bool", True, "Switch."),
        Flag("map", "json", {}, "Object."),
        Flag("key", "texts", (), "Keys."),
        Flag("names", "words", (), "Names."),
        Flag("paths", "csv", (), "Paths."),
        Flag("mode", "text", "a", "Mode.", choices=("a", "b")),
        Flag("later", "int", 1, "Later.", feature="thing", comes="Someday", harmless=(0,)),
        Flag("idle", "bool", False, "Idle.", note="It does nothing."),
        Flag("spec-model", "text", None, "Draft.", feature="drafting"),
        Flag("attention-backend", "text", "auto", "Kernels.", harmless=("native",), feature="choice"),
    )
)


def values(*words: str) -> dict[str, Any]:
    said: list[str] = []
    parsed = parse_words(words, INDEX, said.append)
    assert not said
    return parsed.values


def warnings(*words: str) -> list[str]:
    said: list[str] = []
    parse_words(words, INDEX, said.append)
    return said


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["--name", "x"], {"name": "x"}),
        (["--name=x=y"], {"name": "x=y"}),
        (["--name="], {"name": ""}),
        (["-c", "2"], {"count": 2}),
        (["-c=2"], {"count": 2}),
        (["--number", "-2"], {"count": -2}),
        (["--rate", "1e-2"], {"rate": 0.01}),
        (["--size", "4k"], {"size": 4000}),
        (["--size", "auto"], {"size": -1}),
        (["--size", "-1"], {"size": -1}),
        (["--on"], {"on": True}),
        (["--no-on"], {"on": False}),
        (["--no_on"], {"on": False}),
        (["--on=false"], {"on": False}),
        (["--map", '{"a": 1}'], {"map": {"a": 1}}),
        (["--map.a", "1", "--map.b.c=x"], {"map": {"a": 1, "b": {"c": "x"}}}),
        (["--map", '{"a": 1}', "--map.b", "[2]"], {"map": {"a": 1, "b": [2]}}),
        (["--key", "a", "--key=b"], {"key": ("a", "b")}),
        (["--key", '["a", "b"]'], {"key": ("a", "b")}),
        (["--names", "a", "b", "--on"], {"names": ("a", "b"), "on": True}),
        (["--paths", "/a, /b"], {"paths": ("/a", "/b")}),
        (["--mode", "b"], {"mode": "b"}),
        (["--later", "0"], {"later": 0}),
        (["--name", "x", "--name", "y"], {"name": "y"}),
    ],
)
def test_values(words: list[str], expected: dict[str, Any]) -> None:
    assert values(*words) == expected


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--nmae", "x"], "Unknown flag --nmae. Did you mean --name?"),
        (["--zzzzzz"], "Unknown flag --zzzzzz. headway serve --help=all"),
        (["-z"], "Unknown flag -z"),
        (["--name"], "--name needs a value"),
        (["--name", "--on"], "--name needs a value"),
        (["--count", "x"], "--count needs an integer, got 'x'"),
        (["--rate", "x"], "--rate needs a number, got 'x'"),
        (["--size", "4q"], "--size needs a number with an optional unit"),
        (["--on=perhaps"], "--on needs true or false"),
        (["--no-on=true"], "takes no value"),
        (["--no-name"], "Unknown flag --no-name"),
        (["--map", "{"], "--map needs JSON"),
        (["--map", "3", "--map.a", "1"], "no object"),
        (["--map.a", "1", "--map.a.b", "2"], "no object"),
        (["--count.a", "1"], "--count takes one value"),
        (["--names"], "--names needs at least one value"),
        (["--mode", "c"], "--mode must be one of a, b, got 'c'"),
    ],
)
def test_errors(words: list[str], message: str) -> None:
    with pytest.raises(ConfigError) as found:
        values(*words)
    assert message in found.value.message


def test_words_that_are_no_flags() -> None:
    parsed = parse_words(["model", "--on", "--", "--name"], INDEX, print)
    assert parsed.words == ["model", "--name"]


@pytest.mark.parametrize(("word", "topic"), [("--help", ""), ("-h", ""), ("--help=all", "all"), ("--help=cache", "cache")])
def test_help(word: str, topic: str) -> None:
    assert parse_words([word], INDEX, print).topic == topic


def test_what_is_not_built_is_refused_by_name() -> None:
    with pytest.raises(NotBuiltError, match=r"--later is not built yet: this version has no thing \(planned: Someday\)"):
        values("--later", "2")


def test_old_spellings_are_translated_with_one_warning() -> None:
    assert warnings("--disable-flash-attn", "--disable_flash_attn") == ["--disable-flash-attn was renamed to --attention-backend native"]
    said: list[str] = []
    with pytest.raises(NotBuiltError, match="--spec-model"):
        parse_words(["--speculative-model", "x"], INDEX, said.append)
    assert said == ["--speculative-model was renamed to --spec-model"]


def test_flags_without_effect_are_told_once() -> None:
    assert warnings("--idle", "--idle") == ["--idle has no effect: It does nothing."]
    assert warnings("--no-idle") == []


def test_a_file_has_values_of_its_own_types() -> None:
    given = {"count": 3, "on": False, "map": {"a": 1}, "key": ["a", "b"], "names": "x", "size": "4K", "rate": 1, "no-on": True}
    del given["no-on"]
    assert values_from_file(given, INDEX, print) == {
        "count": 3, "on": False, "map": {"a": 1}, "key": ("a", "b"), "names": ("x",), "size": 4096, "rate": 1.0,
    }  # fmt: skip
    for wrong in ({"count": [1]}, {"name": None}, {"count": "x"}, {"nope": 1}, {"later": 2}):
        with pytest.raises(ConfigError):
            values_from_file(wrong, INDEX, print)


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("7", 7), ("4k", 4000), ("4K", 4096), ("25.6k", 25600), ("25.6K", 26214), ("1m", 10**6), ("1M", 2**20), ("2G", 2**31),
        ("256MiB", 2**28), ("256 MiB", 2**28), ("2GiB", 2**31), ("2gib", None), ("1GB", 10**9), ("1kb", 1000), ("-1", -1),
        ("", None), ("k", None), ("4kk", None), ("1e3", None), ("1iB", None),
    ],
)  # fmt: skip
def test_sizes(text: str, number: int | None) -> None:
    if number is None:
        with pytest.raises(ValueError, match="unit"):
            read_size(text)
    else:
        assert read_size(text) == number
