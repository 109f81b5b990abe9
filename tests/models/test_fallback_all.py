"""Every causal language model of transformers: either equal logits or a refusal with a reason, as docs/models.md says."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers

from headway.artifacts.inspect import inspect
from headway.errors import ArtifactError
from headway.models.causal_lm import CausalLM
from headway.models.load import load_model
from headway.models.registry import ARCHITECTURES
from tests.models.automatic_configs import causal_architectures, config_of, randomize_gently
from tests.models.runs import in_chunks

PAGE = (Path(__file__).parents[2] / "docs" / "models.md").read_text(encoding="utf-8")
LARGEST = 100_000_000  # parameters of what counts as a small model
KNOWN = causal_architectures()


def named(begin: str, end: str) -> list[str]:
    part = PAGE[PAGE.index(begin) : PAGE.index(end, PAGE.index(begin))]
    return [name for name in re.findall(r"`(\w+)`", part) if name in KNOWN]


NATIVE = named("## Native", "## Through transformers")
RUN = named("## Through transformers", "## Refused")
REFUSED = named("## Refused", "Not tried")
UNTRIED = named("Not tried", "## Changing")


def test_the_page_names_every_architecture_once() -> None:
    listed = [*NATIVE, *RUN, *REFUSED, *UNTRIED]
    assert sorted(listed) == sorted(set(listed))
    assert set(NATIVE) == set(ARCHITECTURES)
    assert set(KNOWN) == set(listed)
    assert f"transformers {'.'.join(transformers.__version__.split('.')[:2])} " in PAGE


def small_model(name: str, folder: Path) -> Any:
    """A model of small sizes written to `folder`, and read again by transformers; None when none can be made."""
    model_class = getattr(transformers, name)
    try:
        config = config_of(KNOWN[name])
        with torch.device("meta"):
            if sum(weight.numel() for weight in model_class._from_config(config).parameters()) > LARGEST:
                return None
        model = model_class._from_config(config, dtype=torch.float32, attn_implementation="eager")
        randomize_gently(model)
        model.save_pretrained(folder)
        return model_class.from_pretrained(folder, dtype=torch.float32, attn_implementation="eager").eval()
    except Exception:  # the class does not like the sizes
        return None


def load(folder: Path) -> CausalLM:
    return load_model(inspect(str(folder)), torch.float32, context_length=200, implementation="transformers")


@pytest.mark.long
@pytest.mark.parametrize("name", sorted(KNOWN))
def test_equal_logits_or_a_refusal_with_a_reason(name: str, tmp_path: Path) -> None:
    model = small_model(name, tmp_path / "model")
    if model is None:
        assert name in UNTRIED
        return
    if name in REFUSED or name in ("StableLmForCausalLM", "FalconForCausalLM"):  # run natively, and only so
        with pytest.raises(ArtifactError, match=r"cannot be run: .{10}") as caught:
            load(tmp_path / "model")
        assert caught.value.reason == "unsupported_architecture"
        return
    loaded = load(tmp_path / "model")
    assert name in RUN or name in NATIVE
    text = torch.randint(3, 150, (100,), generator=torch.Generator().manual_seed(1)).tolist()
    with torch.no_grad():
        expected = model(torch.tensor([text]), use_cache=False).logits[0]
    assert expected.std() > 0.05
    for size in (100, 7):
        assert (in_chunks(loaded, text, size) - expected).abs().max() <= 5e-4
