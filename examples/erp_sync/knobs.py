"""What can be turned in a run."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Knobs:
    """The settings of a run; `HELP` says what each means."""

    rate: float = 40.0
    seconds: float = 20.0
    orders: int = 200
    products: int = 40
    failures: float = 0.05
    day: bool = False
    erp_rate: int = 25
    latency: float = 0.01
    orders_rate: int = 20
    poison: int = 1
    kills: int = 0
    seed: int = 1
    port: int = 8080
    log: str = "build/erp_sync.log"
    serve: bool = False
    trace: str = ""

    def __post_init__(self) -> None:
        """Refuse a run that could not begin or never end."""
        if not 0 <= self.failures <= 1 / 2:
            raise ValueError(f"--failures is a share from 0 to 0.5, and not {self.failures}")
        for name in ("rate", "seconds", "orders", "products", "erp_rate", "latency", "orders_rate"):
            if not getattr(self, name) > 0:
                raise ValueError(f"--{name.replace('_', '-')} must be above 0, and is {getattr(self, name)}")
        for name in ("poison", "kills", "port"):
            if getattr(self, name) < 0:
                raise ValueError(f"--{name} must be 0 or more, and is {getattr(self, name)}")


HELP = {
    "rate": "changes a second in the shop",
    "seconds": "how long the shop goes on changing",
    "orders": "how many orders there are",
    "products": "how many products there are",
    "failures": "share of the ERP's answers that fail, of those that are slow, of those that other users' requests "
    "throttle, and of order webhooks that are lost",
    "day": "the seconds are a day: changes are few at its ends, and nearly twice as many as in the mean at noon",
    "latency": "seconds that the ERP takes for a request",
    "orders_rate": "orders a second that the web app begins at most, for the ERP's sake",
    "erp_rate": "requests a second that the ERP serves; it answers 429 to more",
    "poison": "orders that the ERP can never take",
    "kills": "how often the web app is killed, with its daemon, and started again",
    "seed": "what the shop changes, and when, follows from it",
    "port": "port of the web app; 0 for any that is free",
    "log": "file for the log of the web app",
    "trace": "write when which order is sent to this file, for lowkiq simulate --trace, and run nothing",
    "serve": "go on after the report, until Ctrl-C",
}
