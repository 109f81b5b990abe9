"""`--enable-log-outputs`: a line for each finished answer with what the model wrote."""

from __future__ import annotations

import logging
from collections import defaultdict
from contextlib import aclosing

from headway.server.merged_outputs import Outputs

_log = logging.getLogger(__name__)


async def logged(outputs: Outputs, longest: int | None) -> Outputs:
    """`outputs`, unchanged; texts in the log are cut to `longest` characters."""
    texts: dict[tuple[int, int], list[str]] = defaultdict(list)
    async with aclosing(outputs):
        async for prompt, output in outputs:
            for sequence in output.outputs:
                parts = texts[prompt, sequence.index]
                parts.append(sequence.text)
                if sequence.finish_reason is not None:
                    text = "".join(texts.pop((prompt, sequence.index)))
                    shown = text if longest is None or len(text) <= longest else text[:longest] + "..."
                    _log.info(
                        "Generated response %s: output: %r, finish_reason: %s", output.request_id, shown, sequence.finish_reason
                    )
            yield prompt, output
