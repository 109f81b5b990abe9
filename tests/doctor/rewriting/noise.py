"""Lines of other programs, and of this one, that say nothing about the fault."""

from __future__ import annotations

from random import Random

SHARE = 0.3


def with_noise(lines: list[str], random: Random) -> list[str]:
    """30 % of the lines of the answer are unrelated ones, anywhere between the others."""
    ready = next((index for index, line in enumerate(lines) if "Application startup complete" in line), len(lines))
    mixed: list[str] = []
    for index, line in enumerate(lines):
        mixed.append(line)
        while random.random() < SHARE:
            mixed.append(_one(random, index >= ready))
    return mixed


def _one(random: Random, ready: bool) -> str:
    second, other = random.randrange(60), random.randrange(10, 250)
    kinds = [
        f'{{"level":"info","service":"billing","msg":"invoice {other} stored","took_ms":{second}}}',
        f'{{"time":"2026-05-0{random.randrange(1, 9)}T10:11:{second:02}Z","app":"search-indexer","event":"segment merged","docs":{other * 113}}}',
        f"tokenizer.json: {second + 40:3}%|{'#' * 12}   | 5.{second}M/7.03M [00:0{second % 9}<00:01, 11.{second}MB/s]",
        f"/usr/lib/python3/dist-packages/scipy/__init__.py:{other}: UserWarning: a NumPy version >=1.22.4 and <2.3.0 is required for this version of SciPy",
        "DeprecationWarning: pkg_resources is deprecated as an API. See https://setuptools.pypa.io/en/latest/pkg_resources.html",
        f"[exporter] scrape of node metrics took 0.0{second} s",
        f"postgres: checkpoint complete: wrote {other} buffers (0.{second}%); 0 WAL file(s) added",
        f"redis: {other} changes in 300 seconds. Saving... DB saved on disk",
        f"cron[{other}]: (root) CMD (run-parts /etc/cron.hourly)",
    ]
    if ready:
        kinds += [
            f'INFO:     10.77.3.{other}:5{other:04} - "GET /metrics HTTP/1.1" 200 OK',
            f'INFO:     10.77.3.{other}:5{other:04} - "GET /health HTTP/1.1" 200 OK',
        ]
    return random.choice(kinds)
