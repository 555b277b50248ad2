"""How far the models are from what others measured; `recommend accuracy` prints it."""
