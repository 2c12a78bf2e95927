"""Reads the main line of a git repository: the first parents of HEAD, each compared with the one before.

It uses git's plumbing only, whose output no configuration of the user changes.
"""

import os
import subprocess
from collections.abc import Iterable, Iterator, Sequence
from itertools import count, zip_longest
from pathlib import Path

from local.demo.history import Change, Files, History, HistoryError, path_id

COMMITS_AT_ONCE = 1000
"""How many commits one git process compares; also how far a limited reading may look too far back."""

# A hook of git, or a tool that calls us from one, leaves these set: they would win over the folder we name.
_ENVIRONMENT_OF_A_HOOK = {"GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_COMMON_DIR", "GIT_PREFIX"}


def read_repository(folder: Path, limit: int | None = None) -> History:
    """The history of the repository that `folder` is in.

    At most `limit` changes are read, the latest, in whole commits; the last commit with a change is always
    among them. Raises `HistoryError` where there is no git, no repository, or no commit.
    """
    git = _Git(folder)
    commit = git.head()
    commits = git.first_parents(commit)
    changes: list[Change] = []
    taken = 0
    for of_commit in _newest_first(git, commits):
        if limit is not None and changes and len(changes) + len(of_commit) > limit:
            break
        changes += reversed(of_commit)
        taken += 1
    changes.reverse()
    base_seq = len(commits) - taken
    return History(
        origin=str(folder.absolute()),
        commit=commit,
        changes=changes,
        final=git.files(commit),
        base=git.files(commits[taken]) if base_seq else {},
        base_seq=base_seq,
    )


def _newest_first(git: "_Git", commits: Sequence[str]) -> Iterator[list[Change]]:
    """The changes of each commit of `commits`, which run from new to old."""
    with_parents = list(zip_longest(commits, commits[1:]))
    for start in range(0, len(commits), COMMITS_AT_ONCE):
        some = with_parents[start : start + COMMITS_AT_ONCE]
        changes = git.changes(some)
        for seq, (commit, _) in zip(count(len(commits) - start, -1), some, strict=False):
            yield [Change(seq, path, blob) for path, blob in changes.get(commit, [])]


class _Git:
    """The git commands that the reading needs, run in one folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._environment = {
            name: value for name, value in os.environ.items() if name not in _ENVIRONMENT_OF_A_HOOK
        } | {"LC_ALL": "C"}

    def head(self) -> str:
        """The object id of the last commit."""
        try:
            self._run("rev-parse", "--git-dir")
        except HistoryError as error:
            if "not a git repository" in str(error):
                raise HistoryError(f"{self._folder} is not a git repository, nor in one") from error
            raise
        try:
            return self._run("rev-parse", "--verify", "--quiet", "HEAD^{commit}").decode().strip()
        except HistoryError as error:
            raise HistoryError(f"{self._folder} is a git repository that has no commit yet") from error

    def first_parents(self, commit: str) -> list[str]:
        """`commit` and its first parents, new to old."""
        return self._run("rev-list", "--first-parent", commit, "--").decode().split()

    def files(self, commit: str) -> Files:
        """Every file, link and submodule of `commit`."""
        listed = self._run("ls-tree", "-r", "-z", "--full-tree", commit)
        entries = (entry.split(b"\t", 1) for entry in listed.split(b"\0") if entry)
        return {path_id(path): about.split()[2].decode() for about, path in entries}

    def changes(self, with_parents: Iterable[tuple[str, str | None]]) -> dict[str, list[tuple[str, str | None]]]:
        """What each commit changed against its parent, or against nothing, by commit."""
        pairs = "".join(f"{commit} {parent or ''}".rstrip() + "\n" for commit, parent in with_parents)
        compared = self._run(
            *("diff-tree", "--stdin", "--root", "-r", "--raw", "-z", "--no-abbrev", "--no-renames"),
            "--ignore-submodules=none",
            stdin=pairs.encode(),
        )
        return _parse(compared)

    def _run(self, *arguments: str, stdin: bytes = b"") -> bytes:
        try:
            done = subprocess.run(
                ["git", "-C", str(self._folder), *arguments],
                input=stdin,
                env=self._environment,
                capture_output=True,
                check=True,
            )
        except FileNotFoundError as error:
            raise HistoryError("git was not found on PATH") from error
        except subprocess.CalledProcessError as error:
            message = error.stderr.decode(errors="replace").strip()
            raise HistoryError(f"{self._folder}: git {arguments[0]} failed: {message}") from error
        return done.stdout


def _parse(compared: bytes) -> dict[str, list[tuple[str, str | None]]]:
    """The output of `git diff-tree`: a commit's id, then an entry and a path for each of its changes."""
    changes: dict[str, list[tuple[str, str | None]]] = {}
    fields = iter(compared.split(b"\0")[:-1])
    of_commit: list[tuple[str, str | None]] = []
    for text in fields:
        if text.startswith(b":"):
            path = next(fields)  # read here, as a path may look like an entry or like an id
            blob = text.split()[3].decode()
            of_commit.append((path_id(path), blob if blob.strip("0") else None))
        else:
            of_commit = changes.setdefault(text.decode(), [])
    return changes
