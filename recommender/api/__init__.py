"""The APIs for other programs: Python callers and agents."""
