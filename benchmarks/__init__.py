"""What a machine really does: micro-benchmarks whose figures feed the catalog."""

PROJECT = "recommend"  # lets recommender/ notice a foreign package of the same name
