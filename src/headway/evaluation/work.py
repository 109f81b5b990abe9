"""All that is asked of a model: the windows of the texts and the choices of the questions, as its tokenizer spells them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from headway.evaluation.scoring import Numbers, ScoringRequest
from headway.evaluation.task_file import Task
from headway.evaluation.task_requests import task_requests
from headway.evaluation.task_results import TaskResult
from headway.evaluation.text_results import TextResult
from headway.evaluation.texts import Text
from headway.evaluation.tokenized_text import TokenizedText, text_requests
from headway.evaluation.vocabulary import Vocabulary


@dataclass(frozen=True, slots=True)
class Material:
    """`width` and `stride` of the windows, in tokens."""

    texts: tuple[Text, ...]
    tasks: tuple[Task, ...]
    width: int
    stride: int

    def limited(self, most: int, vocabulary: Vocabulary) -> Material:
        """The first `most` questions of each task, and of each text what the model of `vocabulary` reads in `most` windows."""
        reach = self.width + (most - 1) * self.stride
        texts = tuple(_beginning(text, vocabulary.tokenized(text), reach) for text in self.texts)
        return replace(self, texts=texts, tasks=tuple(replace(task, questions=task.questions[:most]) for task in self.tasks))


@dataclass(frozen=True, slots=True)
class TextWork:
    text: TokenizedText
    requests: tuple[ScoringRequest, ...]

    def result(self, logprobs: Sequence[Numbers]) -> TextResult:
        """`logprobs` of each request."""
        return TextResult(self.text, np.concatenate(logprobs))


@dataclass(frozen=True, slots=True)
class TaskWork:
    """`requests` of all choices of all questions, in order."""

    task: Task
    requests: tuple[ScoringRequest, ...]

    def result(self, logprobs: Sequence[Numbers]) -> TaskResult:
        """`logprobs` of each request."""
        sums = iter([float(each.sum()) for each in logprobs])
        return TaskResult(self.task, tuple(np.array([next(sums) for _ in question.choices]) for question in self.task.questions))


@dataclass(frozen=True, slots=True)
class Work:
    texts: tuple[TextWork, ...]
    tasks: tuple[TaskWork, ...]

    @property
    def request_sets(self) -> list[tuple[ScoringRequest, ...]]:
        """Of the texts, then of the tasks."""
        return [*(each.requests for each in self.texts), *(each.requests for each in self.tasks)]

    @property
    def tokens(self) -> int:
        return sum(len(request.tokens) for requests in self.request_sets for request in requests)


def work_of(material: Material, vocabulary: Vocabulary) -> Work:
    """Raises ConfigError."""
    texts = []
    for text in material.texts:
        tokens = vocabulary.tokenized(text)
        texts.append(TextWork(tokens, tuple(text_requests(tokens, min(material.width, vocabulary.longest), material.stride))))
    tasks = []
    for task in material.tasks:
        requests = task_requests(task, vocabulary.encode, vocabulary.prefix, vocabulary.opening, vocabulary.longest)
        tasks.append(TaskWork(task, tuple(request for each in requests for request in each)))
    return Work(tuple(texts), tuple(tasks))


def _beginning(text: Text, tokens: TokenizedText, reach: int) -> Text:
    """Up to the end of token number `reach`, in whole characters."""
    if len(tokens.ids) <= reach:
        return text
    return Text(text.name, text.content.encode()[: int(tokens.ends[reach - 1])].decode("utf-8", "ignore"))


def same_tokens(one: Work, other: Work) -> bool:
    """Whether two models read the texts as the same tokens, so that their distributions can be compared place by place."""
    return [each.requests for each in one.texts] == [each.requests for each in other.texts]
