"""The commands of `recommend` beside `plan`, one module each or one for a group."""
