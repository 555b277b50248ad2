"""Timings to run by hand; the last line of each is JSON. No test depends on them."""
