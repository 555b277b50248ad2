"""Spot risk of a job: runs and outages, Monte Carlo paths, fallback."""
