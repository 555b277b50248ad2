"""The planner: from a job and its limits to an answer."""
