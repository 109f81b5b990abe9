"""The engine: scheduler, model runner, sampler, and the two ways to drive them (LLM, AsyncEngine)."""
