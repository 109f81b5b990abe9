"""RankDecoder: the layers of one stage, of whose matrices this rank has a part."""

from __future__ import annotations

import torch

from headway.distributed.process_groups import ProcessGroups
from headway.kernels.batch import ForwardBatch
from headway.kernels.interface import Kernels
from headway.kernels.paged_kv import PagedKV
from headway.layers.alibi import DividedAlibi
from headway.layers.moe import MixtureOfExperts
from headway.models.decoder import Decoder
from headway.models.decoder_config import DecoderConfig
from headway.models.fill import module_at
from headway.models.recorded_forward import Forward, StepLimits
from headway.models.sharded.divided_config import kv_repeats
from headway.models.sharded.summed_modules import DividedEmbedding, SummedExperts, SummedLinear, SummedRowNorm


class RankDecoder(Decoder):
    """All ranks run the same batches in the same order. Only those of the last stage return hidden states [N, hidden]; the others
    return none, [0, hidden]."""

    def __init__(self, config: DecoderConfig, whole: DecoderConfig, dtype: torch.dtype, kernels: Kernels, groups: ProcessGroups):
        """`config` is the rank's own, `whole` that of the model."""
        super().__init__(config, dtype, kernels)
        self.groups = groups
        self.hidden_size = whole.hidden_size
        place = groups.place
        self._before = None if place.is_first else place.rank - place.tensor
        self._after = None if place.is_last else place.rank + place.tensor
        if place.tensor > 1 and place.is_first:
            self.embedding = DividedEmbedding(self.embedding, place.uneven_share(whole.vocab_size), groups.summed)  # type: ignore[assignment]
        if config.qk_norm == "rows" and place.tensor > 1:
            heads, repeats = (config.num_heads, config.num_kv_heads), kv_repeats(whole, place)
            for layer in self.layers:
                layer.attention.head_norm = SummedRowNorm(  # type: ignore[assignment]
                    config.norm_epsilon, heads, place.tensor, repeats, groups.summed
                )
        if self._alibi is not None and place.tensor > 1:
            self._alibi = DividedAlibi(whole.num_heads, place.share(whole.num_heads), whole.attention_scale, kernels.device)

    def sum_up(self, paths: frozenset[str]) -> None:
        """The modules at `paths`, once their weights are there, add their results up over the ranks of the stage."""
        adds = self.groups.place.part == 0
        for path in sorted(paths):
            if ".experts." not in path:
                module = module_at(self, path)
                module.packed = SummedLinear(module.packed, self.groups.summed, adds=adds)
        for layer in self.layers:
            if isinstance(layer.mlp, MixtureOfExperts) and self.groups.place.tensor > 1:
                layer.mlp = SummedExperts(layer.mlp, self.groups.summed, adds=adds)  # type: ignore[assignment]

    def prepared(self, kv: PagedKV, limits: StepLimits) -> Forward:
        """What ranks tell each other is no kernel that could be recorded."""
        return self.forward

    def _entered(self, batch: ForwardBatch) -> torch.Tensor:
        if self._before is None:
            return super()._entered(batch)
        x = torch.empty(len(batch.token_ids), self.hidden_size, dtype=self.dtype)
        return self.groups.receive(x, self._before).to(self.device)

    def _left(self, x: torch.Tensor, batch: ForwardBatch) -> torch.Tensor:
        if self._after is None:
            return super()._left(x, batch)
        self.groups.send(x.cpu().contiguous(), self._after)
        return x[:0]
