"""Files that run a plan: for schedulers, and for the clouds' own command-line tools."""
