"""Stands in for `vllm-srun serve` on a Unix socket: `python scripted_srun.py FOLDER serve --models F --uds S ...`.

FOLDER/mode says what the next start does: ready, loading, failed, quick (exits with 3), deaf (ignores SIGTERM). Each start writes a line with its
process id and its arguments to FOLDER/starts.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import socketserver
import sys
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

folder, words = Path(sys.argv[1]), sys.argv[2:]
mode = (folder / "mode").read_text().strip()
with (folder / "starts").open("a") as starts:
    starts.write(json.dumps({"pid": os.getpid(), "words": words}) + "\n")
if mode == "quick":
    print("cannot open the device", flush=True)
    sys.exit(3)
if mode == "deaf":
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
[entry] = json.loads(Path(words[words.index("--models") + 1]).read_text())["models"]
status, reason = {"loading": ("loading", "resolving the model"), "failed": ("failed", "a file hash does not match")}.get(mode, ("ready", None))
card: dict[str, Any] = {
    "id": entry["name"], "surfaces": ["decisions"] if status == "ready" else [], "question_types": ["noul"], "heads": [],
    "limits": {"max_input_tokens": 100}, "model_sha256": "b" * 64, "ready": status == "ready", "device": entry["device"],
}  # fmt: skip


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        models = {entry["name"]: {"status": status, "reason": reason}}
        health = {"api_version": "2.2.0", "status": status, "reason": reason, "model": entry["name"], "models": models}
        self.answer(503 if self.path == "/health" and status != "ready" else 200, health if self.path == "/health" else {"data": [card]})

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        self.answer(200, {"answers": {name: {"type": "noul", "noul": 0.5} for name in body["questions"]}, "pid": os.getpid()})

    def answer(self, code: int, body: dict[str, Any]) -> None:
        content = json.dumps(body).encode()
        self.send_response(code)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def address_string(self) -> str:
        return "router"

    def log_message(self, format: str, *args: object) -> None:
        """Only the line of the start is of interest."""


class Server(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
    daemon_threads = True
    address_family = socket.AF_UNIX


print(f"serving {entry['name']}", flush=True)
Server(words[words.index("--uds") + 1], Handler).serve_forever()
