"""A training job: its fields, its file, the presets, and what is derived from them."""
