"""The site's search: an index of the words that readers type, and nothing that only the project itself needs."""

import json
from pathlib import Path
from typing import Any, Final

INDEX: Final = {
    "retries.html": ("Retry", "Retry delay", "Backoff"),
    "retries.html#dead-jobs": ("Dead letter", "Dead letter queue"),
    "limits.html": ("Priority", "Rate limit", "Throttle"),
    "tutorial.html": ("Quickstart", "Getting started"),
    "push.html#run-it-later": ("Delay", "Later", "Run at a time", "ETA", "Countdown"),
    "schedules.html": ("Cron", "Periodic", "Beat"),
    "testing.html": ("Test", "Mock"),
    "deploy.html": ("Deploy",),
    "faq.html#why-does-my-job-not-run": ("Why does a job wait", "Stuck"),
    "tasks.html": ("Chord", "Group", "Callback"),
    "why-not.html": ("Workflow", "Chain"),
    "repeats.html#once-for-each-event-key": ("Idempotency key", "Deduplication"),
    "repeats.html#if-you-come-from-unique-jobs": ("Unique", "Lock"),
    "repeats.html#one-call-for-a-burst-debounce": ("Debounce",),
    "daemon.html": ("Graceful shutdown", "systemd", "Docker", "Kubernetes"),
    "throughput.html": ("Concurrency", "Prefetch"),
    "telemetry.html": ("Monitoring", "Metrics"),
    "lifecycle.html#suspects": ("Poison message",),
}
"""Words of the trade, and the page or the part that answers them. A reader types them, and our own word may differ."""
UNSEARCHED: Final = ("sources.html", "source/", "project/")
"""For people who work on the project."""


def index(site: Path) -> None:
    """Write the data of the search anew: without the pages for few, and with an entry for each word of the index.

    A member of a class has the name of the class before its own, as else members come before the guides.
    """
    path = site / "search.json"
    data: dict[str, Any] = json.loads(path.read_text())
    items = [item for item in data["items"] if not item["location"].startswith(UNSEARCHED)]
    for item in items:
        page, _, name = item["location"].partition("#lowkiq_lambda.")
        if page.startswith("reference/") and name:
            item["title"] = f"lowkiq_lambda {' '.join(name.split('.')[:-1])} {item['title']}"
    sections = {item["location"]: item for item in items}
    words = [{**sections[place], "title": word, "level": 1} for place, titles in INDEX.items() for word in titles]
    data["items"] = [*words, *items]
    path.write_text(json.dumps(data))
