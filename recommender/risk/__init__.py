"""What spot does to a job: runs and outages, Monte Carlo paths, fallback."""
