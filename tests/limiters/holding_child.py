"""A process that has a grant until it is killed: `python -m tests.limiters.holding_child URL NAME`."""

import sys

from lowkiq_lambda import Concurrent, Config, Lowkiq, Rate

if __name__ == "__main__":
    _, url, name = sys.argv
    app = Lowkiq(Config(redis_url=url))
    app.limiter(f"{name}-rate", Rate(2, per=60)).acquire(points=2)
    with app.limiter(f"{name}-places", Concurrent(1, hold=1.0)).acquire():
        sys.stdout.write("held\n")
        sys.stdout.flush()
        sys.stdin.readline()
