"""The configuration document v0.3 as typed models: one class for each mapping, the field names of vllm-sr."""
