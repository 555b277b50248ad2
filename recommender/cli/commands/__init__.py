"""The commands of `recommend`, one module each or one for a group."""
