"""The routes on which prompts are read."""

from __future__ import annotations

from typing import Final

from headway.server.pooling.cohere_embed import create_cohere_embeddings
from headway.server.pooling.comparison import create_rerank, create_score
from headway.server.pooling.embeddings import create_classification, create_embeddings, create_pooling
from headway.server.pooling.generative_scoring import create_generative_scores
from headway.server.route import Route
from headway.wire.pooling.cohere_embed import CohereEmbedAnswer, CohereEmbedBody
from headway.wire.pooling.generative_scoring import GenerativeScoringAnswer, GenerativeScoringBody
from headway.wire.pooling.input_body import (
    ClassifyAnswer,
    ClassifyBody,
    EmbeddingsAnswer,
    EmbeddingsBody,
    PoolingAnswer,
    PoolingBody,
)
from headway.wire.pooling.pair_bodies import RerankAnswer, RerankBody, ScoreAnswer, ScoreBody

POOLING_ROUTES: Final = (
    Route("/v1/embeddings", ("POST",), create_embeddings, EmbeddingsBody, EmbeddingsAnswer, counted=True),
    Route("/v2/embed", ("POST",), create_cohere_embeddings, CohereEmbedBody, CohereEmbedAnswer, counted=True),
    Route("/pooling", ("POST",), create_pooling, PoolingBody, PoolingAnswer, counted=True),
    Route("/classify", ("POST",), create_classification, ClassifyBody, ClassifyAnswer, counted=True),
    *(Route(path, ("POST",), create_score, ScoreBody, ScoreAnswer, counted=True) for path in ("/score", "/v1/score")),
    *(Route(path, ("POST",), create_rerank, RerankBody, RerankAnswer, counted=True) for path in ("/rerank", "/v1/rerank", "/v2/rerank")),
    Route("/generative_scoring", ("POST",), create_generative_scores, GenerativeScoringBody, GenerativeScoringAnswer, counted=True),
)
