"""Embeddings in this process beside sentence-transformers and onnxruntime: text in, vector out, tokenizing included, in one run, in turns.

    python benchmarks/runtime.py                              all sections, float32, bfloat16 and int8
    python benchmarks/runtime.py --sections single,mixed --dtypes float32 --runs 9

`single`: one short text after the other. `mixed`: 32 texts of very different lengths as one request. `short`: 1,000 short texts.
`long`: 100 texts that fill the model's 256 tokens, or nearly. All sides take batches of 32 rows, sorted by length. Figures are
medians of texts per second; the ratio is that of a turn of ours to the better of the peers' beside it, then its median. Vectors are
compared before anything is measured. int8 stands beside sentence-transformers in bfloat16 and an int8 graph in onnxruntime
(`pip install onnxruntime`).
"""

from __future__ import annotations

import argparse
import base64
import os
import platform
import random
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from importlib.metadata import version
from typing import Any, Final

from headway.host.openmp import bound_spinning

bound_spinning(os.environ)  # before torch is imported

import numpy as np  # noqa: E402
import torch  # noqa: E402
from quiet import add_reading_options, alternate, reading_options  # noqa: E402

from headway.artifacts.resolve import locate  # noqa: E402
from headway.runtime.family import Placement  # noqa: E402
from headway.runtime.package import Package  # noqa: E402
from headway.runtime.tasks.family import TaskHeads  # noqa: E402
from headway.wire.embeddings import EmbeddingsRequest, Text  # noqa: E402

MODEL: Final = "all-minilm-l6-v2"
BATCH: Final = 32
OURS, SBERT, ONNX = "Headway", "sentence-transformers", "onnxruntime"
ONNX_MODEL: Final = "all-minilm-l6-v2-int8-onnx"
DTYPES: Final = ("float32", "bfloat16", "int8")
LEAST_COSINE: Final = {"float32": 0.99999, "bfloat16": 0.999, "int8": 0.999}
Embed = Callable[[Sequence[str]], Any]


@dataclass(frozen=True)
class Section:
    """`words`: how many a text has, at least and at most. `one_by_one`: every text is a request of its own. `goal`: what the
    ratio should be at least, by data type."""

    name: str
    texts: int
    words: tuple[int, int]
    one_by_one: bool
    goal: dict[str, float]


SECTIONS: Final = (
    Section("single", 20, (4, 20), True, {"float32": 1.5, "bfloat16": 1.2, "int8": 2.0}),
    Section("mixed", 32, (3, 180), False, {"float32": 1.5, "bfloat16": 1.2, "int8": 2.0}),
    Section("short", 1000, (4, 20), False, {"float32": 1.2, "bfloat16": 1.4, "int8": 2.0}),
    Section("long", 100, (170, 260), False, {"float32": 1.2, "bfloat16": 1.4, "int8": 2.0}),
)
WORDS: Final = ["the", "of", "and", "to", "in", "a", "is", "that", "for", "it", "as", "was", "with", "be", "by", "on", "not", "he", "his", "but", "at", "are", "this", "have", "from", "or", "had", "an", "they", "which", "one", "you", "were", "all", "her", "she", "there", "would", "their", "we", "him", "been", "has", "when", "who", "will", "no", "more", "if", "out", "so", "up", "said", "what", "its", "about", "than", "into", "them", "can", "only", "other", "time", "new", "some", "could", "these", "two", "may", "first", "then", "do", "any", "like", "my", "now", "over", "such", "our", "man", "me", "even", "most", "made", "after", "also", "did", "many", "before", "must", "through", "years", "where", "much", "your", "way", "well", "down", "should", "because", "long", "each", "just", "state", "those", "people", "too", "mr", "how", "little", "good", "world", "make", "very", "year", "still", "see", "own", "work", "men", "day", "get", "here", "old", "life", "both", "between", "being", "under", "three", "never", "know", "same", "last", "another", "while", "us", "off", "might", "great", "go", "come", "since", "against", "right", "used", "take", "himself", "few", "american", "home", "small", "place", "again", "party", "government", "system", "number", "water", "school", "night", "general", "during", "without", "however", "program", "question", "language", "policy", "account", "network"]


def made_texts(section: Section, run: int) -> list[str]:
    """Texts of common words, other ones in each run."""
    chance = random.Random(f"{section.name} {run}")
    return [" ".join(chance.choices(WORDS, k=chance.randint(*section.words))) + "." for _ in range(section.texts)]


def ours(path: Any, dtype: str) -> Embed:
    """The planner of `/v1/embeddings`, and forward passes of `BATCH` rows, sorted by length."""
    package, family = Package(MODEL, path), TaskHeads()
    placement = Placement("cpu", dtype, enable_shared_context=False)  # type: ignore[arg-type]
    model = family.load(package, family.describe(package), placement, lambda done, total: None)

    def embed(texts: Sequence[str]) -> Any:
        request = EmbeddingsRequest(tuple(Text(text) for text in texts), base64=True, overflow="truncate")
        plan = model.planners["embeddings"](request)
        rows = next(plan)
        order = sorted(range(len(rows)), key=lambda i: -rows[i].cost)
        outcomes: list[Any] = [None] * len(rows)
        for start in range(0, len(order), BATCH):
            chosen = order[start : start + BATCH]
            for i, outcome in zip(chosen, model.forward([rows[i] for i in chosen]), strict=True):
                outcomes[i] = outcome
        try:
            plan.send(outcomes)
        except StopIteration as done:
            return [entry["embedding"] for entry in done.value["data"]]
        raise AssertionError("an embedding takes one round")

    return embed


def sentence_transformers(path: Any, dtype: str) -> Embed:
    from sentence_transformers import SentenceTransformer

    model = SentenceTransformer(str(path), device="cpu", model_kwargs={"dtype": getattr(torch, dtype)}, local_files_only=True)
    return lambda texts: model.encode(list(texts), batch_size=BATCH, show_progress_bar=False, convert_to_numpy=True)


def onnxruntime(path: Any, threads: int) -> Embed:
    """An int8 graph, which gives hidden states; their means, normalized, are the vectors. The tokenizer is that of the model at `path`."""
    from onnxruntime import InferenceSession, SessionOptions
    from tokenizers import Tokenizer

    options = SessionOptions()
    options.intra_op_num_threads = threads
    graph = locate(ONNX_MODEL).path
    session = InferenceSession(str(graph), options, providers=["CPUExecutionProvider"])
    wanted = {each.name for each in session.get_inputs()}
    tokenizer = Tokenizer.from_file(str(path / "tokenizer.json"))
    tokenizer.enable_truncation(256)
    tokenizer.enable_padding()

    def embed(texts: Sequence[str]) -> Any:
        order = sorted(range(len(texts)), key=lambda i: -len(texts[i]))
        vectors: list[Any] = [None] * len(texts)
        for start in range(0, len(order), BATCH):
            chosen = order[start : start + BATCH]
            encoded = tokenizer.encode_batch([texts[i] for i in chosen])
            mask = np.array([each.attention_mask for each in encoded], np.int64)
            feed = {"input_ids": np.array([each.ids for each in encoded], np.int64), "attention_mask": mask, "token_type_ids": np.zeros_like(mask)}
            hidden = session.run(None, {name: each for name, each in feed.items() if name in wanted})[0]
            pooled = (hidden * mask[..., None]).sum(1) if hidden.ndim == 3 else hidden
            for i, vector in zip(chosen, pooled / np.linalg.norm(pooled, axis=1, keepdims=True), strict=True):
                vectors[i] = vector
        return np.stack(vectors)

    return embed


def peers(path: Any, dtype: str, threads: int) -> dict[str, Embed]:
    if dtype == "int8":
        return {SBERT: sentence_transformers(path, "bfloat16"), ONNX: onnxruntime(path, threads)}
    return {SBERT: sentence_transformers(path, dtype)}


def texts_per_second(embed: Embed, section: Section) -> Callable[[int], float]:
    def work(run: int) -> float:
        texts = made_texts(section, run)
        requests = [[text] for text in texts] if section.one_by_one else [texts]
        start = time.perf_counter()
        for request in requests:
            embed(request)
        return len(texts) / (time.perf_counter() - start)

    return work


def least_cosine(embed: Embed, reference: Embed) -> float:
    """Between the vectors of both for texts of all lengths; both are normalized."""
    texts = [text for section in SECTIONS for text in made_texts(section, -2)[:16]]
    vectors = np.stack([np.frombuffer(base64.b64decode(each), np.float32) for each in embed(texts)])
    return float((vectors * np.asarray(reference(texts), np.float32)).sum(1).min())


def main() -> int:
    args = _arguments()
    torch.set_num_threads(args.threads)
    path = locate(args.model).path
    print(conditions(args))
    truth = sentence_transformers(path, "float32")
    print(f"\n{'section':8} {'dtype':9} {OURS:>10} {'peers':>40} {'ratio':>7} {'goal':>5}  texts/s; ratios; foreign CPU")
    failed = False
    for dtype in args.dtypes:
        contenders = {OURS: ours(path, dtype), **peers(path, dtype, args.threads)}
        cosine = least_cosine(contenders[OURS], truth)
        print(f"{'cosine':8} {dtype:9} {cosine:.7f} to {SBERT} in float32, at least {LEAST_COSINE[dtype]} wanted")
        failed |= cosine < LEAST_COSINE[dtype]
        for section in SECTIONS:
            if section.name not in args.sections:
                continue
            works = [(name, texts_per_second(embed, section)) for name, embed in contenders.items()]
            for _, work in works:
                work(-1)  # warm up
            mine, *others = alternate(works, args.runs, **reading_options(args))
            ratios = [each / max(theirs) for each, theirs in zip(mine.values, zip(*(other.values for other in others), strict=True), strict=True)]
            ratio = statistics.median(ratios)
            failed |= ratio < section.goal[dtype]
            beside = ", ".join(f"{other.name} {other.median:.1f}" for other in others)
            foreign = max(max(each.foreign) for each in (mine, *others))
            print(
                f"{section.name:8} {dtype:9} {mine.median:10.1f} {beside:>40} {ratio:6.2f}x {section.goal[dtype]:4.1f}x"
                f"  {' '.join(f'{each:.2f}' for each in ratios)}; {foreign:.0%}",
                flush=True,
            )
    return int(failed and args.strict)


def conditions(args: argparse.Namespace) -> str:
    versions = ", ".join(f"{name} {version(name)}" for name in ("torch", "transformers", "sentence-transformers", "tokenizers"))
    return (
        f"{datetime.now():%Y-%m-%d %H:%M}, in process, {args.model}, {args.threads} threads of {os.cpu_count()} cores, {platform.processor() or platform.machine()},"
        f" python {platform.python_version()}, {versions}; {args.runs} readings in turns, batches of {BATCH}"
    )


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    names = [section.name for section in SECTIONS]
    parser.add_argument("--model", default=MODEL, help="a sentence-transformers model: name in the registry, or folder")
    parser.add_argument("--sections", type=lambda text: text.split(","), default=names, help=",".join(names))
    parser.add_argument("--dtypes", type=lambda text: text.split(","), default=list(DTYPES), help=",".join(DTYPES))
    add_reading_options(parser)
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
