"""A small server: answers and reports over HTTP, on this machine unless told otherwise."""
