"""What a machine really does: micro-benchmarks whose figures feed the catalog."""
