"""The user's own benchmarks: kept, pooled, and put in place of shipped speeds."""
