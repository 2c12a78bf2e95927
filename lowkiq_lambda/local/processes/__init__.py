"""A daemon of several processes: a parent that supervises them, and children that drain. Imported only for those."""
