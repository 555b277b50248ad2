"""What can be rented: instance types, offers, prices, measured hardware and spot facts."""

MANIFEST = "manifest.json"  # of a catalog folder; small, so that ages are known at once
