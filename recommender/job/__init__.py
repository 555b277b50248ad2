"""A training job: its fields, its file, the presets, and the derivation of missing values."""
