"""DeepVM (CCGrid 2024) replayed: its selection rules beside our planner."""
