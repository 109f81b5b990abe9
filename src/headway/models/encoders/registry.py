"""model_type -> declaration."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from headway.models.encoders.architecture import EncoderArchitecture
from headway.models.encoders.bert import BERT, ROBERTA
from headway.models.encoders.deberta_v2 import DEBERTA_V2
from headway.models.encoders.distilbert import DISTILBERT
from headway.models.encoders.modernbert import MODERNBERT
from headway.models.encoders.mpnet import MPNET

ENCODERS: Final[Mapping[str, EncoderArchitecture]] = {
    name: known for known in (BERT, ROBERTA, DISTILBERT, MPNET, DEBERTA_V2, MODERNBERT) for name in known.model_types
}
