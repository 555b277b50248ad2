"""What can be rented: instance types, offers, prices, measured hardware and spot facts."""

PROJECT = "recommend"  # lets recommender/ notice a foreign package of the same name
