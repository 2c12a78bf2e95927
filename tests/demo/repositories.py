"""Makes real git repositories, as small as a test needs them."""

import os
import subprocess
from pathlib import Path

_ENVIRONMENT = {
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_SYSTEM": os.devnull,
    **{f"GIT_{role}_NAME": "A. Developer" for role in ("AUTHOR", "COMMITTER")},
    **{f"GIT_{role}_EMAIL": "developer@example.org" for role in ("AUTHOR", "COMMITTER")},
    **{f"GIT_{role}_DATE": "2001-02-03T04:05:06Z" for role in ("AUTHOR", "COMMITTER")},
}


class Repository:
    """A new git repository in a folder."""

    def __init__(self, folder: Path, *options: str) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        self.git("init", "--quiet", "--initial-branch=main", *options)

    def git(self, *arguments: str | bytes) -> str:
        """Run a git command in the repository; what it printed."""
        done = subprocess.run(
            ["git", "-c", "core.excludesFile=", *arguments],
            cwd=self.folder,
            env={**os.environ, **_ENVIRONMENT},
            check=True,
            stdout=subprocess.PIPE,
        )
        return done.stdout.decode(errors="replace").strip()

    def write(self, path: str | bytes, content: str) -> None:
        """Give a file of the work tree this content."""
        file = os.path.join(os.fsencode(self.folder), os.fsencode(path))  # noqa: PTH118 - the path may be bytes
        os.makedirs(os.path.dirname(file), exist_ok=True)  # noqa: PTH103, PTH120 - as above
        with open(file, "w", encoding="utf-8") as opened:  # noqa: PTH123 - as above
            opened.write(content)

    def commit(self, files: dict[str, str | None] | None = None) -> str:
        """Commit these files, None being a deletion, and all else that is there; the commit's id."""
        for path, content in (files or {}).items():
            if content is None:
                (self.folder / path).unlink()
            else:
                self.write(path, content)
        self.git("add", "--all")
        self.git("commit", "--quiet", "--allow-empty", "--message", "a change")
        return self.git("rev-parse", "HEAD")
