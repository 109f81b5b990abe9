"""Files that a configuration names, wherever it names them."""

from __future__ import annotations

from pathlib import Path

from headway.router.config.document.document import Document
from headway.router.process.referenced_files import referenced_files
from tests.router.config.documents import changed


def test_files_of_classes_and_of_plugins_are_found_and_others_are_not(tmp_path: Path) -> None:
    for name in ("cert.pem", "key.pem", "tools.json"):
        (tmp_path / name).write_text("x")
    data = changed("listeners", 0, "tls", to={"cert_file": "cert.pem", "key_file": str(tmp_path / "key.pem")})
    settings = {"enabled": True, "mode": "add", "tools_db_path": "tools.json"}
    data["routing"]["decisions"][0]["plugins"] = [{"type": "tool_selection", "configuration": settings}]
    data["global"] = {"integrations": {"tools": {"tools_db_path": "nowhere.json"}}}
    assert referenced_files(Document.of(data, tmp_path)) == [tmp_path / name for name in ("cert.pem", "key.pem", "tools.json")]
