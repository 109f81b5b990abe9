"""The version under which the alias shows itself."""

from __future__ import annotations

from headway import __version__

VLLM_API = "0.32.0"  # the vLLM whose names, flags and routes Headway follows
# Tools compare `vllm.__version__` with a vLLM version, people want to know what it is: PEP 440's local part says that.
ALIAS_VERSION = f"{VLLM_API}+headway.{__version__}"
