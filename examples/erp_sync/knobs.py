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
    erp_rate: int = 25
    poison: int = 1
    kills: int = 0
    seed: int = 1
    port: int = 8080
    log: str = "build/erp_sync.log"
    serve: bool = False


HELP = {
    "rate": "changes a second in the shop",
    "seconds": "how long the shop goes on changing",
    "orders": "how many orders there are",
    "products": "how many products there are",
    "failures": "share of the ERP's answers that fail, of those that are slow, and of order webhooks that are lost",
    "erp_rate": "requests a second that the ERP serves; it answers 429 to more",
    "poison": "orders that the ERP can never take",
    "kills": "how often the web app is killed, with its daemon, and started again",
    "seed": "what the shop changes, and when, follows from it",
    "port": "port of the web app; 0 for any that is free",
    "log": "file for the log of the web app",
    "serve": "go on after the report, until Ctrl-C",
}
