"""Task models on encoders: classification, token spans, embeddings, reranking, entailment."""
