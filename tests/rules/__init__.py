"""The rules of the queue, seen from its public face: a real server, and a clock that tests move."""
