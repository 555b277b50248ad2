"""How far the models are from what others measured."""
