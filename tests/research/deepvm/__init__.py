"""DeepVM (CCGrid 2024) replayed: its selection rules next to our planner."""
