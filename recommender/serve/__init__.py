"""A small server: answers and reports over HTTP, by default for this machine only."""
