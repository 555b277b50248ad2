"""The cost-optimal fallback policy of a semi-Markov availability model."""
