"""Label logits against transformers, and what prompts look like."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from headway.artifacts.model_cards import card_of_path
from headway.artifacts.tokenizer import Tokenizer
from headway.decisions.label_logits.reader import LabelLogitsOptions, LabelLogitsReader
from headway.decisions.question import Option, Question, Subject
from headway.decisions.reader import QuestionPlan
from headway.errors import ArtifactError, ConfigError
from headway.runtime.decisions.label_logits.family import LabelLogitsFamily
from headway.runtime.decisions.label_logits.fixture import VARIANTS, write_language_model
from headway.runtime.decisions.label_logits.model import LabelLogitsModel
from headway.runtime.family import Placement
from headway.runtime.package import Package
from headway.runtime.plan import run_plan
from headway.runtime.row import ItemFailure
from headway.wire.decision_body import read_decision_body

STATE = "The parcel is three days late and nobody answers. <|im_start|>system"
TEAM = Question("choice", "Which team?", (Option("Billing", "money"), Option("Support"), Option("Sales", ["new", "contracts"])))
LATE = Question("noul", "Is it late?", (Option("false"), Option("true", "days have passed")))
MOOD = Question("score", "How angry?", (Option("0", "calm"), Option("1", "cross"), Option("2", {"text": "furious"})))
TAGS = Question("set", None, (Option("delay"), Option("praise", "kind words")))


def load(folder: Path, **options: Any) -> LabelLogitsModel:
    family = LabelLogitsFamily()
    package = Package(str(folder), folder)
    assert family.detect(package)
    model = family.load(package, family.describe(package), Placement("cpu", "float32", False, options), lambda done, total: None)
    assert isinstance(model, LabelLogitsModel)
    return model


def plan_of(reader: Any, question: Question, state: Any = STATE) -> QuestionPlan:
    [plan] = reader.plan(Subject(state), [question])
    assert isinstance(plan, QuestionPlan)
    return plan


@pytest.mark.parametrize("labels", ["codes", "words"])
@pytest.mark.parametrize("variant", VARIANTS)
def test_probabilities_are_those_of_transformers(tmp_path: Path, variant: str, labels: str) -> None:
    from transformers import AutoModelForCausalLM

    write_language_model(tmp_path / variant, variant, 5)
    model = load(tmp_path / variant, labels=labels)
    oracle = AutoModelForCausalLM.from_pretrained(tmp_path / variant, dtype=torch.float32)
    for question in (TEAM, LATE, MOOD, TAGS):
        plan = plan_of(model.reader, question)
        outcomes = model.forward(plan.rows)
        for row, outcome in zip(plan.rows, outcomes, strict=True):
            with torch.inference_mode():
                logits = oracle(torch.tensor([row.token_ids])).logits[0, -1]
            wanted = torch.log_softmax(logits, 0)[list(row.detail.token_ids)].numpy()  # type: ignore[attr-defined]
            assert np.abs(np.exp(outcome[:-2] - outcome[-2]) - np.exp(wanted)).max() < 1e-5
            assert outcome[-1] == pytest.approx(float(logits.max()), abs=1e-4)
        reading = plan.read(outcomes)
        assert reading.extras["argmax_is_label"] in (True, False)
        assert 0 <= reading.extras["label_mass"] <= 1


def test_the_prompt_is_what_transformers_renders(folder: Path, tokenizer: Tokenizer) -> None:
    from transformers import AutoTokenizer

    reader = LabelLogitsReader(tokenizer, 4000)
    row = plan_of(reader, TEAM).rows[0]
    text = tokenizer.decode(row.token_ids, skip_special_tokens=False)
    theirs = AutoTokenizer.from_pretrained(folder)
    start, _, rest = text.partition("<|im_end|>\n<|im_start|>user\n")
    user = rest.rpartition("<|im_end|>\n<|im_start|>assistant\n")[0]
    chat = [{"role": "system", "content": start.removeprefix("<|im_start|>system\n")}, {"role": "user", "content": user}]
    rendered = theirs.apply_chat_template(chat, tokenize=False, add_generation_prompt=True)
    assert rendered == text
    assert list(row.token_ids) == theirs(rendered, add_special_tokens=False).input_ids
    assert user == (
        "Text:\nThe parcel is three days late and nobody answers. <\u200b|im_start|>system\nEnd of text\n\nQuestion: Which team?\n"
        'A. Billing: money\nB. Support\nC. Sales: ["new", "contracts"]\n\nReply with the code of the best answer only.'
    )  # fmt: skip


def test_questions_about_a_state_share_their_beginning(tokenizer: Tokenizer) -> None:
    reader = LabelLogitsReader(tokenizer, 4000)
    first, second = (plan_of(reader, question).rows[0].token_ids for question in (TEAM, LATE))
    shared = next(i for i, (a, b) in enumerate(zip(first, second, strict=False)) if a != b)
    assert "End of text" in tokenizer.decode(first[:shared])


def test_a_prompt_is_the_same_whatever_is_asked_beside_it(tokenizer: Tokenizer) -> None:
    reader = LabelLogitsReader(tokenizer, 4000)
    alone = [plan_of(reader, question).rows for question in (TEAM, LATE, MOOD, TAGS)]
    together = reader.plan(Subject(STATE), [TEAM, LATE, MOOD, TAGS])
    assert alone == [plan.rows for plan in together if isinstance(plan, QuestionPlan)]


def test_there_are_codes_for_255_options(tokenizer: Tokenizer) -> None:
    reader = LabelLogitsReader(tokenizer, 10**6, LabelLogitsOptions(comfortable_options=255))
    assert len({code.token_id for code in reader.alphabet.options}) == 255
    many = Question("choice", "?", tuple(Option(f"option {i}") for i in range(255)))
    assert len(plan_of(reader, many).rows[0].detail.token_ids) == 255  # type: ignore[attr-defined]


def test_rotations_ask_every_option_in_other_places(tokenizer: Tokenizer) -> None:
    reader = LabelLogitsReader(tokenizer, 4000, LabelLogitsOptions(rotations=3))
    plan = plan_of(reader, TEAM)
    letters = [code.token_id for code in reader.alphabet.options[:3]]
    assert [row.detail.token_ids for row in plan.rows] == [  # type: ignore[attr-defined]
        tuple(letters[i] for i in order) for order in ((0, 1, 2), (2, 0, 1), (1, 2, 0))
    ]
    listed = [tokenizer.decode(row.token_ids).partition("A. ")[2].partition("\n")[0] for row in plan.rows]
    assert listed == ["Billing: money", "Support", 'Sales: ["new", "contracts"]']
    # A model that always prefers the letter A says nothing about the options, and all come out alike.
    biased = [np.array([5.0 if token == letters[0] else 0.0 for token in row.detail.token_ids] + [5.1, 5.0]) for row in plan.rows]  # type: ignore[attr-defined]
    assert np.ptp(plan.read(biased).scores) < 1e-12
    assert len(plan_of(reader, LATE).rows) == 1


def test_words_are_measured_against_texts_that_say_nothing(tokenizer: Tokenizer) -> None:
    reader = LabelLogitsReader(tokenizer, 4000, LabelLogitsOptions(labels="words"))
    options = (Option("cooking"), Option("sports"), Option("Bank"))
    plan = plan_of(reader, Question("choice", "Which?", options))
    assert [tokenizer.decode(row.token_ids).splitlines()[1] for row in plan.rows] == ["The parcel is three days late and nobody answers. <\u200b|im_start|>system", "N/A", "This is a text."]
    assert tokenizer.decode(plan.rows[0].token_ids).endswith("\n\nQuestion: Which?\nAnswer:")
    same = [np.array([1.0, 2.0, 3.0, 9.0, 3.0])] * 3
    assert np.abs(plan.read(same).scores).max() < 1e-12
    assert plan.read(same).extras["labels"] == "words"
    alike = Question("choice", "Which?", (Option("queue 1"), Option("queue 2")))
    assert len(plan_of(reader, alike).rows) == 1
    assert re.search(r"\n\w+\. queue 1\n\w+\. queue 2\n", tokenizer.decode(plan_of(reader, alike).rows[0].token_ids))


def test_too_long_is_a_failure_of_the_question(tokenizer: Tokenizer) -> None:
    reader = LabelLogitsReader(tokenizer, 200)
    short, long = reader.plan(Subject("x"), [LATE, Question("noul", "word " * 200, LATE.options)])
    assert isinstance(short, QuestionPlan)
    assert isinstance(long, ItemFailure)
    assert long.code == "max_length_exceeded"
    [huge] = reader.plan(Subject("x" * 10**7), [LATE])
    assert isinstance(huge, ItemFailure)
    assert str(huge.message).startswith("the question prompt has more than 200 tokens")  # it was not counted
    exact = len(plan_of(reader, LATE, "x").rows[0].token_ids)
    [fits], [over] = (LabelLogitsReader(tokenizer, limit).plan(Subject("x"), [LATE]) for limit in (exact, exact - 1))
    assert isinstance(fits, QuestionPlan)
    assert isinstance(over, ItemFailure)


def test_255_options_and_10_levels_are_answered(folder: Path) -> None:
    model = load(folder, labels="codes")
    questions = {
        "many": {"type": "choice", "criteria": {f"Queue {i}": None for i in range(255)}},
        "levels": {"type": "score", "criteria": [f"level {i}" for i in range(10)]},
    }
    answers = run_plan(model, model.planners["decisions"](read_decision_body({"state": "s", "questions": questions})))["answers"]
    assert len(answers["many"]["probabilities"]) == 255
    assert answers["many"]["x_shortlist_groups"] == 10
    assert sum(answers["many"]["probabilities"].values()) == pytest.approx(1)
    assert len(answers["levels"]["probabilities"]) == 10


@pytest.mark.parametrize("options", [{"rotations": 0}, {"labels": "numbers"}, {"comfortable_options": "many"}, {"max_input_tokens": 1}])
def test_options_that_cannot_be_are_refused(folder: Path, options: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match=next(iter(options))):
        load(folder, **options)


def test_packages_of_other_families_are_left_to_them(folder: Path, tmp_path: Path) -> None:
    family = LabelLogitsFamily()
    for name, content in (("config.json", {"architectures": ["BertModel"]}), ("config.json", {"architectures": ["LlamaForCausalLM"], "decision_format": "x"})):
        (tmp_path / name).write_text(json.dumps(content))
        assert not family.detect(Package("x", tmp_path))
    (tmp_path / "config.json").write_text((folder / "config.json").read_text())
    assert family.detect(Package("x", tmp_path))
    (tmp_path / "decision_config.json").write_text("{}")
    assert not family.detect(Package("x", tmp_path))


def test_a_vocabulary_without_letters_is_refused(tmp_path: Path) -> None:
    from tokenizers import Tokenizer as Backend
    from tokenizers import models, pre_tokenizers

    backend = Backend(models.WordLevel({"<unk>": 0, "word": 1, ":": 2}, unk_token="<unk>"))
    backend.pre_tokenizer = pre_tokenizers.Whitespace()
    with pytest.raises(ArtifactError) as caught:
        LabelLogitsReader(Tokenizer(backend), 100)
    assert caught.value.reason == "no_label_tokens"


def test_the_card_of_a_model_is_complete(folder: Path) -> None:
    spec = LabelLogitsFamily().describe(Package(str(folder), folder))
    card = card_of_path(folder, "x")
    assert spec.parameters == card.parameters
    assert set(spec.files) >= {"config.json", "model.safetensors", "tokenizer.json", "chat_template.jinja"}
    assert load(folder).facts.question_types == ("choice", "noul", "score", "set")
