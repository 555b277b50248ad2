"""The user's own benchmarks: stored, pooled, and used instead of shipped speeds."""
