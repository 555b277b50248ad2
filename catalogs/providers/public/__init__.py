"""Public price lists that need no account: each file reads one format."""
