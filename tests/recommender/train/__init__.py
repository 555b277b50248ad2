"""Checkpoints, notices and intervals of `recommender.train`."""
