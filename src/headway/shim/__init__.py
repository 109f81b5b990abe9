"""The alias `vllm`: what `headway shim install` writes into an environment, and what its names mean."""
