"""What can be rented: instance types, offers, prices, measured hardware and spot facts."""

PROJECT = "recommend"  # lets recommender/ notice a foreign package of the same name
MANIFEST = "manifest.json"  # of a catalog folder; small, so that ages are known at once
