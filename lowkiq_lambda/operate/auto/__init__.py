"""How many shards a queue needs: the decision by values, what is kept of it, and the duty that proposes or acts."""
