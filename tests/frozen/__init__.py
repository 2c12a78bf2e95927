"""The forms of released versions, which later ones read: data, messages, a declaration, and answers."""
