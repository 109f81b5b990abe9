"""Mean states of texts, computed as the runtime computes them for heads on an embedder with mean pooling."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import torch

from headway.artifacts.model_cards import card_of_path
from headway.artifacts.tokenizer import load_tokenizer
from headway.kernels.packed_batch import pack
from headway.models.encoders.load import load_planned_encoder
from headway.models.encoders.plan import plan_encoder
from headway.runtime.tasks.readouts import pool
from headway.runtime.tasks.sequence_text import SequenceText

States: TypeAlias = npt.NDArray[np.float64]
_ROWS = 32


class SentenceEncoder:
    """`folder` is a package of an encoder, as transformers saves them."""

    def __init__(self, folder: Path) -> None:
        plan = plan_encoder(card_of_path(folder, str(folder)))
        self.limit = plan.max_positions
        self._encoder = load_planned_encoder(plan, torch.float32)
        self._text = SequenceText(load_tokenizer(plan.card), self.limit, True)

    @torch.inference_mode()
    def states(self, texts: Sequence[str]) -> States:
        """[texts, hidden], the mean over all tokens of the last layer; longer texts are cut."""
        rows = [self._text.row(self._text.content(text, self.limit).ids[: self.limit - self._text.single.size], "") for text in texts]
        order = sorted(range(len(rows)), key=lambda n: len(rows[n].token_ids))
        found = np.empty((len(rows), self._encoder.hidden_size))
        for start in range(0, len(order), _ROWS):
            chosen = order[start : start + _ROWS]
            batch = pack([rows[n].token_ids for n in chosen], None)
            starts = batch.starts.tolist()
            ranges = list(pairwise(starts))
            found[chosen] = pool(self._encoder.encode(batch).last, ranges, "mean").numpy()
        return found
