"""How spot capacity comes and goes, and what that does to a job's time and bill."""
