"""Relations between answers to related questions that hold whatever the right answers are."""
