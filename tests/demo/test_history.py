"""The history of a git repository is read whole, in order, and as git itself has it."""

import gzip
import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from local.demo import repository
from local.demo.history import Change, Files, History, HistoryError, path_bytes, path_id
from local.demo.repository import read_repository
from local.demo.source import bundled_history, choose_history
from tests.demo.repositories import Repository

DATA = Path(__file__).parent.parent / "data"


@pytest.fixture
def made(tmp_path: Path) -> Repository:
    """A repository without a commit."""
    return Repository(tmp_path / "made")


def replayed(history: History) -> Files:
    """What a faultless replay would leave."""
    files = dict(history.base)
    for change in history.changes:
        if change.blob is None:
            del files[change.path]
        else:
            files[change.path] = change.blob
    return files


def seen(history: History) -> list[tuple[int, str, bool]]:
    """Each change as (commit's number, path, whether the file is there after it)."""
    return [(change.seq, change.path, change.blob is not None) for change in history.changes]


def test_modes_and_links_and_submodules_are_changes_as_well(made: Repository, tmp_path: Path) -> None:
    """A new mode repeats the content's id, a link's content is its target, a submodule's its commit."""
    inner = Repository(tmp_path / "inner")
    pinned = inner.commit({"a": "1"})
    made.commit({"script": "#!/bin/sh"})
    (made.folder / "script").chmod(0o755)
    made.commit()
    (made.folder / "script").unlink()
    (made.folder / "script").symlink_to("elsewhere")
    made.commit()
    made.git("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(inner.folder), "inside")
    made.commit()
    made.git("update-index", "--cacheinfo", f"160000,{'12' * 20},inside")
    made.git("commit", "--quiet", "--message", "another commit of the submodule")
    made.git("config", "diff.ignoreSubmodules", "all")
    made.git("config", "submodule.inside.ignore", "all")
    history = read_repository(made.folder)
    of_script = [change.blob for change in history.changes if change.path == "script"]
    assert of_script[0] == of_script[1] != of_script[2]
    assert [change.blob for change in history.changes if change.path == "inside"] == [pinned, "12" * 20]
    assert replayed(history) == history.final


ODD_PATHS: Sequence[bytes] = [
    b":100644 looks like an entry",
    b" spaces ", b"tab\tand\nnewline", b'"quotes"', b"back\\slash", b"-option",
    b"percent%41", b"%", b"latin-\xe9", b"\xff\xfe", b"surrogate-\xed\xb2\x80", b"\xc0\xaf",
    "précomposé".encode(), "de\u0301compose\u0301".encode(), "emoji-🙂".encode(), b"\x01\x7f",
    b"a" * 40,
]  # fmt: skip


def test_a_users_configuration_changes_nothing(made: Repository, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither git's settings, nor a hook's environment, nor the folder one stands in have a say."""
    made.commit({"sub/a": "1\n" * 20, "b": "1"})
    made.git("mv", "sub/a", "sub/c")
    made.commit({"b": "2", "sub/d": "1\n" * 20})
    plain = read_repository(made.folder)
    for setting in (
        "diff.relative=true", "diff.renames=copies", "diff.noprefix=true", "core.quotePath=true",
        "log.showSignature=true", "diff.external=false", "core.abbrev=4", "diff.orderFile=none",
        "color.ui=always",
    ):  # fmt: skip
        made.git("config", *setting.split("=", 1))
    monkeypatch.setenv("GIT_DIR", "/nowhere")
    monkeypatch.setenv("GIT_INDEX_FILE", "/nowhere/index")
    read = read_repository(made.folder / "sub")
    assert (read.changes, read.final, read.commit) == (plain.changes, plain.final, plain.commit)


def test_each_commit_has_its_changes_under_its_number(made: Repository) -> None:
    """Oldest first; a rename is a deletion and an addition, a file may become a folder, an empty commit counts."""
    made.commit({"a": "1", "b": "1"})
    made.commit()
    made.commit({"b": None, "c/d": "the very same content\n" * 20})
    made.git("mv", "c/d", "new")
    made.git("rm", "--quiet", "a")
    made.commit({"a/in": "folder"})
    history = read_repository(made.folder)
    assert [(1, "a", True), (1, "b", True), (3, "b", False), (3, "c/d", True)] == seen(history)[:4]
    assert {(4, "a", False), (4, "a/in", True), (4, "c/d", False), (4, "new", True)} == {*seen(history)[4:]}
    assert history.final == replayed(history)
    assert (5, {}, 0) == (history.paths, history.base, history.base_seq)


def test_the_main_line_alone_is_followed_through_merges(made: Repository) -> None:
    """A merge is one commit: what its branches did, however many, and what it changes itself."""
    made.commit({"a": "1"})
    for branch in ("one", "two"):
        made.git("checkout", "--quiet", "-b", branch, "main")
        made.commit({branch: "1"})
        made.commit({branch: "2"})
    made.git("checkout", "--quiet", "main")
    made.commit({"a": "2"})
    made.git("merge", "--quiet", "--no-commit", "--no-ff", "one", "two")
    made.commit({"evil": "written in the merge", "a": "3"})
    history = read_repository(made.folder)
    assert [(3, "a", True), (3, "evil", True), (3, "one", True), (3, "two", True)] == seen(history)[2:]
    assert history.final == replayed(history)


def test_odd_paths_are_read_as_git_has_them(made: Repository) -> None:
    """No path is lost, split or quoted; its id is text that a database takes, and no other path's."""
    for path in ODD_PATHS:
        made.write(path, "content")
    made.commit()
    history = read_repository(made.folder)
    assert {*ODD_PATHS} == {path_bytes(path) for path in history.final}
    assert history.final == replayed(history)
    assert all(path.encode() for path in history.final)
    assert ["%E9", "%25E9", "é"] == [path_id(path) for path in (b"\xe9", b"%E9", "é".encode())]


def test_clones_of_every_kind_are_read(tmp_path: Path) -> None:
    """Neither a work tree nor SHA-1 is needed, and a shallow clone begins with all files of its oldest commit."""
    made = Repository(tmp_path / "long", "--object-format=sha256")
    for content in "12345":
        made.commit({"a": content, content: ""})
    made.git("clone", "--quiet", "--bare", ".", "../bare.git")
    made.git("clone", "--quiet", "--depth=2", f"file://{made.folder}", "../shallow")
    bare, shallow = read_repository(tmp_path / "bare.git"), read_repository(tmp_path / "shallow")
    assert read_repository(made.folder).changes == bare.changes
    assert {64} == {len(blob) for blob in bare.final.values()}
    assert {"a", "1", "2", "3", "4"} == {change.path for change in shallow.changes if change.seq == 1}
    assert bare.final == shallow.final == replayed(shallow)


def test_a_limit_takes_the_latest_commits_whole_and_the_state_before_them(made: Repository) -> None:
    """The replay of a part starts from the commit before it, so it too ends where git ends; one commit at least."""
    for content in "12345":
        made.commit({"a": content, "b": content})
    made.commit({"c": "1"})
    history = read_repository(made.folder, limit=4)
    assert ([5, 5, 6], 4) == ([change.seq for change in history.changes], history.base_seq)
    assert {name: made.git("rev-parse", f"HEAD~2:{name}") for name in "ab"} == history.base
    assert history.final == replayed(history)
    made.commit(dict.fromkeys("abcdef", "6"))
    assert ([7] * 6, 6) == (
        [change.seq for change in read_repository(made.folder, limit=3).changes],
        read_repository(made.folder, limit=3).base_seq,
    )
    assert 0 == read_repository(made.folder, limit=17).base_seq


@pytest.mark.parametrize("limit", [None, 3])
def test_a_long_line_is_read_in_parts(made: Repository, monkeypatch: pytest.MonkeyPatch, limit: int | None) -> None:
    """Where one git process ends and the next goes on makes no difference."""
    for content in "1234567":
        made.commit({"a": content})
    whole = read_repository(made.folder, limit)
    for at_once in (1, 2, 3, 7):
        monkeypatch.setattr(repository, "COMMITS_AT_ONCE", at_once)
        assert whole == read_repository(made.folder, limit)


def test_a_folder_that_cannot_be_read_is_refused_with_a_sentence(
    made: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The error says what is missing: a commit, a repository, the folder, an object of it, or git itself."""
    (tmp_path / "plain").mkdir()
    for folder, words in (("made", "no commit yet"), ("plain", "is not a git repository"), ("nowhere", "nowhere")):
        with pytest.raises(HistoryError, match=words):
            read_repository(tmp_path / folder)
    made.commit({"a": "1"})
    made.commit({"a": "2"})
    tree = made.git("rev-parse", "HEAD^{tree}")
    (made.folder / ".git" / "objects" / tree[:2] / tree[2:]).unlink()
    monkeypatch.setenv("LC_ALL", "C")
    with pytest.raises(HistoryError, match="git diff-tree failed"):
        read_repository(made.folder)
    monkeypatch.setenv("PATH", "")
    with pytest.raises(HistoryError, match="git was not found on PATH"):
        read_repository(made.folder)


def test_which_history_is_taken(made: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A repository that is named, else the checkout around, else, if that has no commit, the bundled one."""
    other = Repository(tmp_path / "other")
    named = other.commit({"b": "1"})
    monkeypatch.chdir(made.folder)
    assert named == choose_history(other.folder).commit
    bundled = choose_history(None)
    assert bundled_history().changes == bundled.changes
    assert "no commit yet" in bundled.origin
    with pytest.raises(HistoryError):
        choose_history(made.folder)
    commit = made.commit({"sub/a": "1"})
    monkeypatch.chdir(made.folder / "sub")
    assert commit == choose_history(None).commit


def test_the_bundled_history_is_whole() -> None:
    """It is the beginning of the test data, in order, and ends as git says."""
    lines = gzip.decompress((DATA / "file-history.jsonl.gz").read_bytes()).splitlines()
    rows = [json.loads(line) for line in lines[:1498]]
    history = bundled_history()
    assert [Change(row["seq"], row["path"], row["blob"]) for row in rows] == history.changes
    assert sorted(history.changes, key=lambda change: change.seq) == history.changes
    assert history.final == replayed(history)
