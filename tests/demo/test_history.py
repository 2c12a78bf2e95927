"""The history of a git repository is read whole, in order, and as git itself has it."""

import gzip
import json
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from lowkiq_lambda.local.demo import repository
from lowkiq_lambda.local.demo.history import Change, Files, History, HistoryError, path_bytes, path_id
from lowkiq_lambda.local.demo.repository import read_repository
from lowkiq_lambda.local.demo.source import bundled_history, choose_history
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


def test_additions_edits_and_deletions_come_oldest_first_with_their_commits_number(made: Repository) -> None:
    """Each commit's change of each file is one change, numbered from the root commit on."""
    made.commit({"a": "1", "b": "1"})
    made.commit({"a": "2"})
    made.commit({"b": None, "c/d": "1"})
    history = read_repository(made.folder)
    assert seen(history) == [
        (1, "a", True), (1, "b", True), (2, "a", True), (3, "b", False), (3, "c/d", True)
    ]  # fmt: skip
    assert replayed(history) == history.final
    assert history.paths == 3
    assert (history.base, history.base_seq) == ({}, 0)


def test_a_commit_that_changes_nothing_still_has_a_number(made: Repository) -> None:
    """The number is the commit's place on the main line, whatever the commit holds."""
    made.commit({"a": "1"})
    made.commit()
    made.commit({"a": "2"})
    assert [change.seq for change in read_repository(made.folder).changes] == [1, 3]


def test_a_rename_is_a_deletion_and_an_addition(made: Repository) -> None:
    """Two ids are concerned, each with its own change, whatever git is configured to detect."""
    made.commit({"old": "the very same content\n" * 20})
    made.git("mv", "old", "new")
    made.commit()
    assert seen(read_repository(made.folder))[1:] == [(2, "new", True), (2, "old", False)]


def test_the_main_line_alone_is_followed_through_merges(made: Repository) -> None:
    """A merge is one commit that brings what its branch did; the branch's own commits don't count."""
    made.commit({"a": "1"})
    made.git("checkout", "--quiet", "-b", "side")
    made.commit({"side": "1"})
    made.commit({"side": "2"})
    made.git("checkout", "--quiet", "main")
    made.commit({"a": "2"})
    made.git("merge", "--quiet", "--no-ff", "--message", "a merge", "side")
    history = read_repository(made.folder)
    assert seen(history) == [(1, "a", True), (2, "a", True), (3, "side", True)]
    assert replayed(history) == history.final


def test_an_octopus_merge_and_one_with_its_own_edit_are_read_against_the_main_line(made: Repository) -> None:
    """However many parents, and whatever the merge itself changes: the first parent is what counts."""
    made.commit({"a": "1"})
    for branch in ("one", "two"):
        made.git("checkout", "--quiet", "-b", branch, "main")
        made.commit({branch: "1"})
    made.git("checkout", "--quiet", "main")
    made.commit({"a": "2"})
    made.git("merge", "--quiet", "--no-commit", "--no-ff", "one", "two")
    made.commit({"evil": "written in the merge", "a": "3"})
    history = read_repository(made.folder)
    assert seen(history)[2:] == [(3, "a", True), (3, "evil", True), (3, "one", True), (3, "two", True)]
    assert replayed(history) == history.final


def test_a_file_becomes_a_folder_and_a_folder_a_file(made: Repository) -> None:
    """The two have different paths, so they are different entities that come and go."""
    made.commit({"x": "file", "y/z": "in a folder"})
    for files in ({"x/in": "folder", "y": "file"}, {"x": "file again", "y/z": "again"}):
        made.git("rm", "--quiet", "-r", ".")
        made.commit({**files})
    history = read_repository(made.folder)
    assert replayed(history) == history.final
    assert set(history.final) == {"x", "y/z"}


def test_a_file_swapped_for_a_folder_in_one_commit(made: Repository) -> None:
    """Deletion and addition share the commit's number."""
    made.commit({"x": "file"})
    (made.folder / "x").unlink()
    made.commit({"x/in": "folder"})
    assert sorted(seen(read_repository(made.folder))[1:]) == [(2, "x", False), (2, "x/in", True)]


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


@pytest.mark.parametrize("path", ODD_PATHS)
def test_a_path_of_any_bytes_has_an_id_of_its_own_that_leads_back_to_it(path: bytes) -> None:
    """An id is text that JSON and a database take, and loses nothing of the path."""
    assert path_bytes(path_id(path)) == path
    path_id(path).encode()


def test_no_two_paths_share_an_id() -> None:
    """What is escaped cannot be mistaken for a path that spells the escape."""
    assert path_id(b"\xe9") == "%E9"
    assert path_id(b"%E9") == "%25E9"
    assert path_id("é".encode()) == "é"


def test_odd_paths_are_read_as_git_has_them(made: Repository) -> None:
    """No path of the work tree is lost, split or quoted."""
    for path in ODD_PATHS:
        made.write(path, "content")
    made.commit()
    history = read_repository(made.folder)
    assert {path_bytes(path) for path in history.final} == set(ODD_PATHS)
    assert replayed(history) == history.final


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


def test_a_bare_repository_and_one_of_long_object_ids_are_read(tmp_path: Path) -> None:
    """Neither a work tree nor SHA-1 is needed."""
    made = Repository(tmp_path / "long", "--object-format=sha256")
    made.commit({"a": "1"})
    made.commit({"a": None, "b": "1"})
    made.git("clone", "--quiet", "--bare", ".", "../bare.git")
    history = read_repository(tmp_path / "bare.git")
    assert history.changes == read_repository(made.folder).changes
    assert replayed(history) == history.final
    assert {len(blob) for blob in history.final.values()} == {64}


def test_a_shallow_clone_begins_with_what_its_oldest_commit_holds(made: Repository, tmp_path: Path) -> None:
    """What was cut off is not needed: the oldest commit that is there adds all its files."""
    for content in "12345":
        made.commit({"a": content, content: ""})
    made.git("clone", "--quiet", "--depth=2", f"file://{made.folder}", "../shallow")
    history = read_repository(tmp_path / "shallow")
    assert sorted({change.seq for change in history.changes}) == [1, 2]
    assert {change.path for change in history.changes if change.seq == 1} == {"a", "1", "2", "3", "4"}
    assert replayed(history) == history.final


def test_a_limit_takes_the_latest_changes_and_the_state_before_them(made: Repository) -> None:
    """The replay of a part starts from the commit before it, so it too ends where git ends."""
    for content in "12345":
        made.commit({"a": content, "b": content})
    made.commit({"c": "1"})
    history = read_repository(made.folder, limit=4)
    assert [change.seq for change in history.changes] == [5, 5, 6]
    assert history.base_seq == 4
    assert history.base == {
        "a": made.git("rev-parse", "HEAD~2:a"), "b": made.git("rev-parse", "HEAD~2:b")
    }  # fmt: skip
    assert replayed(history) == history.final


def test_a_limit_never_splits_a_commit_nor_takes_none(made: Repository) -> None:
    """The last commit is replayed whole, however large it is."""
    made.commit({"a": "1"})
    made.commit(dict.fromkeys("abcdef", "2"))
    history = read_repository(made.folder, limit=3)
    assert len(history.changes) == 6
    assert history.base_seq == 1
    assert read_repository(made.folder, limit=7).base_seq == 0


@pytest.mark.parametrize("limit", [None, 3])
def test_a_long_line_is_read_in_parts(made: Repository, monkeypatch: pytest.MonkeyPatch, limit: int | None) -> None:
    """Where one git process ends and the next goes on makes no difference."""
    for content in "1234567":
        made.commit({"a": content})
    whole = read_repository(made.folder, limit)
    for at_once in (1, 2, 3, 7):
        monkeypatch.setattr(repository, "COMMITS_AT_ONCE", at_once)
        assert read_repository(made.folder, limit) == whole


def test_a_folder_without_a_commit_is_refused_with_a_sentence(made: Repository, tmp_path: Path) -> None:
    """Who names a folder that has no history is told what is missing there."""
    with pytest.raises(HistoryError, match="no commit yet"):
        read_repository(made.folder)
    (tmp_path / "plain").mkdir()
    with pytest.raises(HistoryError, match="is not a git repository"):
        read_repository(tmp_path / "plain")
    with pytest.raises(HistoryError, match="nowhere"):
        read_repository(tmp_path / "nowhere")


def test_a_machine_without_git_is_told_so(made: Repository, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where git is not installed, the error says that, not that the repository is bad."""
    made.commit({"a": "1"})
    monkeypatch.setenv("PATH", "")
    with pytest.raises(HistoryError, match="git was not found on PATH"):
        read_repository(made.folder)


def test_the_checkout_around_is_taken_where_none_is_named(
    made: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From any folder of a work tree, its repository is replayed; a repository that is named goes first."""
    commit = made.commit({"sub/a": "1"})
    monkeypatch.chdir(made.folder / "sub")
    assert choose_history(None).commit == commit
    other = Repository(tmp_path / "other")
    named = other.commit({"b": "1"})
    assert choose_history(other.folder).commit == named


def test_the_bundled_history_is_taken_outside_of_any_checkout(
    made: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without a repository, or in one without a commit, there is something to replay, and it says why."""
    monkeypatch.chdir(made.folder)
    history = choose_history(None)
    assert history.changes == bundled_history().changes
    assert "no commit yet" in history.origin
    with pytest.raises(HistoryError):
        choose_history(made.folder)


def test_the_bundled_history_ends_as_git_says() -> None:
    """The history that ships with the demo is whole and in order."""
    history = bundled_history()
    assert len(history.changes) == 1498
    assert [change.seq for change in history.changes] == sorted(change.seq for change in history.changes)
    assert replayed(history) == history.final


def test_the_bundled_history_is_the_beginning_of_the_test_data() -> None:
    """Both were read from the same repository."""
    lines = gzip.decompress((DATA / "file-history.jsonl.gz").read_bytes()).splitlines()
    rows = [json.loads(line) for line in lines[:1498]]
    assert bundled_history().changes == [Change(row["seq"], row["path"], row["blob"]) for row in rows]


def test_a_repository_that_git_refuses_is_refused_in_gits_words(
    made: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A failure in the midst of the reading is an error, never a shorter history."""
    made.commit({"a": "1"})
    commit = made.commit({"a": "2"})
    tree = made.git("rev-parse", "HEAD^{tree}")
    (made.folder / ".git" / "objects" / tree[:2] / tree[2:]).unlink()
    monkeypatch.setenv("LC_ALL", "C")
    with pytest.raises(HistoryError, match="git diff-tree failed"):
        read_repository(made.folder)
    assert subprocess.run(["git", "cat-file", "-t", commit], cwd=made.folder, check=False).returncode == 0
