"""Pictures of the parts: on AWS, in a daemon, a lease, a move to another number of shards."""

from docs_build.pictures.drawing import Picture


def on_aws() -> Picture:
    """The functions of the stack."""
    picture = Picture(
        "On AWS: your code pushes to Redis, which keeps five shards. EventBridge starts the drain function "
        "once a minute, and a push can wake it; it takes the lease of a shard and runs your handlers. API "
        "Gateway calls the dashboard function for people.",
        326,
    )
    picture.words(20, 24, "On AWS", kind="head")
    picture.box((20, 48, 120, 46), "your code\npushes")
    picture.box((300, 48, 140, 46), "EventBridge\neach minute")
    picture.box((160, 136, 116, 98), "Redis or\nValkey\n\nfive shards", "wait")
    picture.arrow((60, 94), (60, 186), (160, 186), words="jobs", at=(108, 174))
    picture.box((330, 136, 110, 98), "drain\nLambda\n\nyour handlers", "good")
    picture.arrow((405, 94), (405, 136), words="starts", at=(376, 106))
    picture.arrow((330, 164), (276, 164), words="lease", at=(303, 152))
    picture.arrow((276, 206), (330, 206), words="jobs", at=(303, 219))
    picture.arrow((110, 94), (110, 116), (345, 116), (345, 136), words="wake", at=(220, 106))
    picture.box((20, 258, 120, 46), "people\nand API")
    picture.box((190, 258, 130, 46), "dashboard\nLambda", "good")
    picture.arrow((140, 281), (190, 281), words="API", at=(164, 270))
    picture.arrow((240, 258), (240, 234), words="looks", at=(270, 246))
    return picture


def in_a_daemon() -> Picture:
    """The threads of `python -m lowkiq_lambda.local`."""
    picture = Picture(
        "A daemon: one process with drain threads, each with the lease of one shard at a time; a thread "
        "renews the leases, one fires schedules and other housekeeping, and one serves the dashboard. All of "
        "them talk to Redis.",
        288,
    )
    picture.words(20, 24, "In a daemon: lowkiq run", kind="head")
    picture.box((20, 44, 420, 130), "", "quiet")
    picture.words(32, 62, "one process", kind="soft")
    for number in range(3):
        picture.box((32 + number * 92, 76, 84, 40), f"drain\nthread {number + 1}", "good")
    picture.words(312, 96, "…")
    picture.box((344, 76, 86, 40), "dashboard")
    picture.box((32, 126, 176, 36), "renews leases")
    picture.box((222, 126, 208, 36), "schedules, housekeeping")
    picture.arrow((74, 174), (74, 212), words="lease of shard 0", at=(140, 194))
    picture.arrow((300, 174), (300, 212), words="due entries", at=(350, 194))
    picture.box((20, 212, 420, 30), "Redis or Valkey: shards 0, 1, 2, 3, 4", "wait")
    picture.words(20, 264, "More processes share the shards: a shard has one holder.", kind="soft")
    return picture


def lease() -> Picture:
    """Two holders, of whom one dies."""
    picture = Picture(
        "A lease. Process A holds shard 3 with token 7 and runs id 17; it dies. The lease ends after 30 "
        "seconds. Process B gets token 8, recovers id 17 and runs it first. A write of A with token 7 is "
        "refused from then on.",
        254,
    )
    picture.words(20, 24, "A process dies, and no job is lost", kind="head")
    picture.words(20, 66, "A")
    picture.box((50, 52, 130, 28), "token 7: id 17", "good")
    picture.box((184, 52, 66, 28), "dies", "bad")
    picture.words(20, 116, "lease")
    picture.box((66, 102, 224, 28), "shard 3 belongs to A", "wait")
    picture.words(300, 116, "ends by itself", kind="soft")
    picture.words(20, 166, "B")
    picture.box((296, 152, 144, 28), "token 8: id 17", "good")
    picture.arrow((292, 130), (320, 152))
    picture.words(440, 194, "runs id 17 first", kind="soft", end=True)
    picture.words(20, 228, "A write with token 7 is refused from now on.", kind="soft")
    return picture


def moving_shards() -> Picture:
    """From two shards to four, while jobs run."""
    picture = Picture(
        "Moving from two shards to four. New pushes go to the four new shards. Ids of an old shard move in "
        "groups, each with all of its payloads; an id runs in the new shard only when it has left the old "
        "one.",
        282,
    )
    picture.words(20, 24, "From two shards to four, while jobs run", kind="head")
    picture.words(20, 56, "old", kind="soft")
    picture.box((80, 44, 160, 44), "17  19  21  23")
    picture.box((260, 44, 160, 44), "18  20  22  24")
    picture.words(20, 184, "new", kind="soft")
    for number, ids in enumerate(("17  21", "18  22", "19  23", "20  24")):
        picture.box((56 + number * 97, 168, 88, 44), ids, "good")
    picture.arrow((120, 88), (100, 168))
    picture.arrow((200, 88), (290, 168))
    picture.arrow((300, 88), (200, 168))
    picture.arrow((380, 88), (390, 168))
    picture.words(
        20,
        240,
        "Ids move with all their payloads. New pushes go to the new\n"
        "shards. An id runs there only when it has left the old one.",
        kind="soft",
    )
    return picture
