"""From the catalog and the user's wishes to a plan space: who may be rented, where, at what law."""
