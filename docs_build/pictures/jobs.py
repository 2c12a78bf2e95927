"""Pictures of jobs over time: updates of one order, a retry, merging, a cursor, the life of an id."""

from docs_build.pictures.drawing import Picture


def two_updates() -> Picture:
    """Why order needs more than a queue."""
    picture = Picture(
        "Two updates of one order. In a plain queue with two workers, 'paid' fails and is retried after "
        "'sent' was applied, so the order ends as 'paid'. With lowkiq 'paid' is retried first, then 'sent' "
        "runs: the order ends as 'sent'.",
        372,
    )
    picture.words(20, 24, "Order 17: first “paid”, then “sent”", kind="head")
    picture.words(20, 56, "A plain queue, two workers", kind="soft")
    picture.words(20, 96, "worker 1")
    picture.box((90, 82, 72, 28), "paid", "bad")
    picture.words(170, 96, "fails", kind="soft")
    picture.box((270, 82, 82, 28), "paid")
    picture.words(20, 132, "worker 2")
    picture.box((150, 118, 72, 28), "sent", "good")
    picture.arrow((162, 86), (216, 74), (270, 86), words="retry", at=(240, 64))
    picture.arrow((352, 96), (384, 106))
    picture.box((384, 92, 62, 32), "paid", "bad")
    picture.words(384, 140, "wrong", kind="soft")
    picture.line(20, 166, 440, 166)
    picture.words(20, 190, "lowkiq: one order at a time, in order", kind="soft")
    picture.words(20, 224, "order 17")
    picture.box((90, 210, 72, 28), "paid", "bad")
    picture.words(98, 252, "fails", kind="soft")
    picture.box((166, 210, 92, 28), "waits", "quiet")
    picture.box((262, 210, 110, 28), "paid, sent", "good")
    picture.arrow((372, 224), (384, 224))
    picture.box((384, 208, 62, 32), "sent", "good")
    picture.words(384, 256, "right", kind="soft")
    picture.words(20, 294, "order 18")
    picture.box((90, 280, 60, 28), "new", "good")
    picture.box((154, 280, 60, 28), "paid", "good")
    picture.words(20, 330, "order 19")
    picture.box((120, 316, 60, 28), "new", "good")
    picture.words(230, 312, "Other orders do not wait.", kind="soft")
    return picture


def retry_in_one_lane() -> Picture:
    """A failed id waits alone, and gathers."""
    picture = Picture(
        "A retry holds one id only. Id 17 fails and waits 15 seconds for its retry; a payload that is pushed "
        "meanwhile waits with it, and both are handed over in one call. Ids 18 and 19 run on.",
        226,
    )
    picture.words(20, 24, "A retry holds up one id", kind="head")
    for row, name in enumerate(("id 17", "id 18", "id 19")):
        y = 56 + row * 44
        picture.words(20, y + 14, name)
        picture.line(70, y + 14, 440, y + 14)
    picture.box((74, 56, 46, 28), "v1", "bad")
    picture.box((124, 56, 178, 28), "waits 15 s, v2 joins", "wait")
    picture.box((306, 56, 86, 28), "v1, v2", "good")
    picture.box((90, 100, 46, 28), "v1", "good")
    picture.box((190, 100, 46, 28), "v2", "good")
    picture.box((330, 100, 46, 28), "v3", "good")
    picture.box((110, 144, 46, 28), "v1", "good")
    picture.box((250, 144, 86, 28), "v2, v3", "good")
    picture.words(20, 202, "red: failed   yellow: waits   green: done", kind="soft")
    picture.arrow((380, 200), (440, 200), words="time", at=(408, 188))
    return picture


def life_of_an_id() -> Picture:
    """The states, and the ways between them."""
    picture = Picture(
        "The life of an id: a push makes it wait; a claim takes it into flight; it ends as done and is "
        "forgotten, or it is retried, returned or suspected and waits again, or its oldest payload is dead "
        "and lies in the morgue, from which a requeue brings it back.",
        316,
    )
    picture.words(20, 24, "The life of an id", kind="head")
    picture.box((20, 120, 70, 34), "push")
    picture.arrow((90, 137), (128, 137))
    picture.box((128, 112, 96, 50), "waiting", "wait")
    picture.arrow((224, 126), (306, 126), words="claim", at=(265, 114))
    picture.box((306, 112, 96, 50), "in flight", "good")
    picture.arrow((354, 112), (354, 76), words="done", at=(380, 94))
    picture.box((306, 44, 96, 32), "forgotten")
    picture.arrow((330, 162), (330, 190), (200, 190), (200, 162))
    picture.words(222, 206, "retried: it failed", kind="soft")
    picture.words(222, 223, "returned: a stop came", kind="soft")
    picture.words(222, 240, "suspected: run it alone", kind="soft")
    picture.arrow((386, 162), (386, 262), (324, 262), words="dead", at=(410, 214))
    picture.box((222, 258, 102, 40), "morgue", "bad")
    picture.arrow((222, 278), (150, 278), (150, 162), words="requeue", at=(184, 266))
    return picture


def merging() -> Picture:
    """One series of pushes under each word of `merge`."""
    picture = Picture(
        "Three pushes of one id, A, B and A again. merge 'min', the default, hands over A and B; 'max' hands "
        "over B and A; 'never' hands over A, B and A; 'latest' hands over A alone.",
        262,
    )
    picture.words(20, 24, "What merge makes of A, B and A again", kind="head")
    picture.words(20, 62, "pushed")
    for number, payload in enumerate("ABA"):
        picture.box((120 + number * 58, 48, 50, 28), payload)
    rows = {
        '"min"': ("AB", "default: commands"),
        '"max"': ("BA", "the last place"),
        '"never"': ("ABA", "each one"),
        '"latest"': ("A", "the newest"),
    }
    picture.line(20, 90, 440, 90)
    for row, (word, (payloads, use)) in enumerate(rows.items()):
        y = 102 + row * 38
        picture.words(20, y + 14, word)
        for number, payload in enumerate(payloads):
            picture.box((120 + number * 58, y, 50, 28), payload, "good")
        picture.words(306, y + 14, use, kind="soft")
    return picture


def cursor() -> Picture:
    """A long job that outlives its process."""
    picture = Picture(
        "A job with a cursor. A first process handles pages 1 to 40 and saves the cursor 40 at a stop; a "
        "second one goes on after page 40 and ends at page 100.",
        224,
    )
    picture.words(20, 24, "A cursor survives a stop", kind="head")
    picture.words(20, 66, "process 1")
    picture.box((100, 52, 130, 28), "pages 1 to 40", "good")
    picture.words(240, 66, "a stop comes", kind="soft")
    picture.arrow((220, 80), (220, 104), words="checkpoint", at=(170, 94))
    picture.box((180, 104, 96, 32), "cursor 40", "wait")
    picture.words(290, 120, "kept in Redis", kind="soft")
    picture.arrow((240, 136), (240, 162), words="goes on after 40", at=(320, 150))
    picture.words(20, 176, "process 2")
    picture.box((200, 162, 170, 28), "pages 41 to 100", "good")
    picture.words(380, 176, "done", kind="soft")
    picture.arrow((380, 206), (440, 206), words="time", at=(408, 196))
    return picture
