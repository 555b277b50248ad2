"""Public price lists, by the real readers over real sockets."""
