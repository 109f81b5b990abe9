from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from headway.engine.config import EngineConfig
from headway.engine.distributed.messages import Clear, Forward, as_batch, as_message, command_of, encoded
from headway.engine.distributed.refused_settings import check_ranks
from headway.errors import ConfigError, NotBuiltError
from headway.kernels.batch import ForwardBatch


@given(st.lists(st.tuples(st.integers(1, 9), st.integers(0, 40)), min_size=1, max_size=6), st.data())
def test_a_batch_arrives_as_it_was_sent(sequences: list[tuple[int, int]], data: st.DataObject) -> None:
    lens = np.array([new for new, _ in sequences], dtype=np.int32)
    tokens = int(lens.sum())
    long = st.lists(st.integers(0, 2**40), min_size=tokens, max_size=tokens)
    rows = data.draw(st.lists(st.integers(0, tokens - 1), max_size=tokens))
    tables = np.arange(7 * len(sequences), dtype=np.int32).reshape(len(sequences), 7)
    sent = ForwardBatch(
        token_ids=torch.tensor(data.draw(long)), positions=torch.tensor(data.draw(long)), slots=torch.tensor(data.draw(long)),
        query_lens=lens, context_lens=np.array([new + old for new, old in sequences], dtype=np.int32),
        block_tables=tables[:, : data.draw(st.integers(1, 7))], logits_rows=torch.tensor(rows, dtype=torch.int64),
    )  # fmt: skip
    message = command_of(encoded(as_message(sent)))
    assert isinstance(message, Forward)
    found = as_batch(message)
    for name in ("token_ids", "positions", "slots", "logits_rows"):
        assert torch.equal(getattr(found, name), getattr(sent, name))
    for name in ("query_lens", "context_lens", "block_tables"):
        assert np.array_equal(getattr(found, name), getattr(sent, name))


def test_other_commands() -> None:
    assert command_of(encoded(Clear([1, 2]))) == Clear([1, 2])


@pytest.mark.parametrize(
    "settings",
    [{"enable_lora": True}, {"enable_sleep_mode": True}, {"kv_offloading_size": 1.0}, {"load_format": "dummy"}, {"model_impl": "transformers"},
     {"batch_invariant": True}],
)  # fmt: skip
def test_what_several_ranks_cannot_do(settings: dict[str, object]) -> None:
    check_ranks(EngineConfig("m", **settings))
    with pytest.raises(NotBuiltError) as refused:
        check_ranks(EngineConfig("m", pipeline_parallel_size=2, **settings))
    assert refused.value.param in settings


def test_one_rank_is_no_two() -> None:
    with pytest.raises(ConfigError, match="uni has one rank"):
        check_ranks(EngineConfig("m", tensor_parallel_size=2, distributed_executor_backend="uni"))
