"""From a symptom to its proven cause: evidence (logs, context) -> facts -> rules -> findings."""
