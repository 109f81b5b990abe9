"""Runs in the environment of the public vllm-sr package: the verdict of its `config validate --offline` on each file, a JSON line each."""

import json
import sys

from cli.main import main
from click.testing import CliRunner

for name in sys.argv[1:]:
    result = CliRunner().invoke(main, ["config", "validate", "--config", name, "--offline"])
    print(json.dumps({"file": name, "valid": result.exit_code == 0, "said": result.output[-400:]}), flush=True)
