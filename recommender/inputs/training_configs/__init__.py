"""Files that training tools are started with, read for what a job needs of them."""
