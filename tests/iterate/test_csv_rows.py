"""CSV files."""

import ast
import csv
from io import BytesIO, StringIO
from pathlib import Path
from typing import Any, Final

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import lowkiq_lambda
from lowkiq_lambda import CursorError
from lowkiq_lambda.iterate import csv_rows
from tests.iterate.resuming import in_one_go, interrupted

HEADER = ["sku", "text"]
BOM = b"\xef\xbb\xbf"
CELLS = st.text(st.sampled_from('a,"\n\r;é語 '), max_size=6)


def written(rows: list[list[str]], line_end: str = "\n", encoding: str = "utf-8") -> bytes:
    """A file with a header and the rows."""
    file = StringIO(newline="")
    # Before Python 3.13 a lone \r is not quoted where lines end in \n.
    is_lone = "\r" in "".join(map("".join, rows))
    writer = csv.writer(file, lineterminator=line_end, quoting=csv.QUOTE_ALL if is_lone else csv.QUOTE_MINIMAL)
    writer.writerows([HEADER, *rows])
    return file.getvalue().encode(encoding)


@given(
    st.lists(st.lists(CELLS, min_size=2, max_size=2), max_size=8),
    st.sampled_from(["\n", "\r\n"]),
    st.sampled_from([b"", BOM]),
    st.sampled_from([b"", b"\n", b"\r\n"]),
    st.integers(1, 4),
)
@example([["1", "a\nb"], ["2", 'say "\r\n"']], "\r\n", BOM, b"\r\n", 1)
def test_an_interrupted_file_has_each_row_once(
    rows: list[list[str]], line_end: str, mark: bytes, missing: bytes, every: int
) -> None:
    """J-33: quoted newlines, CRLF, a byte order mark, no end of the last line: rows are as in the csv module."""
    data = mark + written(rows, line_end).removesuffix(missing)

    expected = [dict(zip(HEADER, row, strict=True)) for row in rows]
    assert expected == in_one_go(lambda after: csv_rows(BytesIO(data), after))
    assert expected == interrupted(lambda after: csv_rows(BytesIO(data), after), every)


@pytest.mark.parametrize("data", [b"", BOM, b"sku,text\n", b"sku,text", b"\n"])
def test_a_file_without_rows_has_none(data: bytes) -> None:
    """J-23: an empty file is a loop that is over."""
    assert [] == list(csv_rows(BytesIO(data)))


def test_a_resume_reads_the_header_and_what_is_left() -> None:
    """However many rows lie before the cursor, they are not read again."""

    class Counting(BytesIO):
        """A file that counts the bytes that are taken from it."""

        taken = 0

        def readline(self, size: int | None = -1, /) -> bytes:
            """As BytesIO has it."""
            line = super().readline(-1 if size is None else size)
            self.taken += len(line)
            return line

    data = written([[str(number), "x" * 100] for number in range(1_000)])
    *_, (_, cursor), _ = csv_rows(BytesIO(data))
    file = Counting(data)

    assert [{"sku": "999", "text": "x" * 100}] == [row for row, _ in csv_rows(file, cursor)]
    assert [999, len(data) - 105] == cursor[:2]
    assert file.taken == len("sku,text\n") + 105


def test_the_format_is_that_of_the_csv_module() -> None:
    """Names of one's own, delimiters and single-byte encodings."""
    data = "1;'a;é'\n2;b\n".encode("latin-1")

    def loop(after: Any) -> Any:
        return csv_rows(BytesIO(data), after, encoding="latin-1", fieldnames=["n", "t"], delimiter=";", quotechar="'")

    assert [{"n": "1", "t": "a;é"}, {"n": "2", "t": "b"}] == in_one_go(loop) == interrupted(loop, 1)


def test_short_rows_long_rows_and_empty_lines_are_as_in_dict_reader() -> None:
    """They come as `csv.DictReader` has them, and empty lines are no rows."""
    data = b"a,b\n\n1\n\n1,2,3\n"

    def loop(after: Any) -> Any:
        return csv_rows(BytesIO(data), after)

    assert list(csv.DictReader(StringIO(data.decode()))) == in_one_go(loop) == interrupted(loop, 1)


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-32", "utf-7", "cp037", "hz"])
def test_encodings_that_hide_newlines_are_refused(encoding: str) -> None:
    """A byte 10 must be the end of a line."""
    with pytest.raises(ValueError, match=f"csv_rows cannot read {encoding}"):
        next(csv_rows(BytesIO(b""), encoding=encoding))


@pytest.mark.parametrize("encoding", ["utf-8-sig", "ascii", "latin-1", "cp1252", "shift_jis", "gb18030", "euc-kr"])
def test_encodings_with_ascii_in_them_are_read(encoding: str) -> None:
    """Most of the world's files."""
    [(row, cursor)] = csv_rows(BytesIO(b"sku,text\n1,b\n"), encoding=encoding)

    assert ({"sku": "1", "text": "b"}, [1, 13]) == (row, cursor[:2])


def test_a_file_in_text_mode_is_refused() -> None:
    """Its positions are no bytes."""
    with pytest.raises(TypeError, match="binary mode"):
        next(csv_rows(StringIO("a,b\n")))  # type: ignore[arg-type]  # the mistake


@pytest.mark.parametrize(
    ("cursor", "why"),
    [
        (1, "it must be [row, byte after it, checksum]"),
        ([1], "it must be [row, byte after it, checksum]"),
        ([1, "9", 0], "it must be [row, byte after it, checksum]"),
        ([1, -9, 0], "it must be [row, byte after it, checksum]"),
        ([1, 99, 0], "the file has only 17 bytes"),
        ([1, 11, 0], "no line ends at byte 11, so the file has changed"),
        ([0, 9, 0], "the first row begins at byte 9"),
        ([1, 13, 0], "the header, or what comes before byte 13, is not as it was"),
    ],
)
def test_a_cursor_of_another_file_is_refused(cursor: Any, why: str) -> None:
    """Better a failure than rows cut in the middle."""
    with pytest.raises(CursorError) as caught:
        next(csv_rows(BytesIO(b"sku,text\n1,b\n2,c\n"), cursor))

    assert f"The cursor {cursor!r} is not one of csv_rows: {why}." == str(caught.value)


def test_a_file_that_became_empty_is_refused() -> None:
    """Rows that were there before are gone, so the job must not end as if it had done them."""
    with pytest.raises(CursorError, match="only 0 bytes"):
        next(csv_rows(BytesIO(b""), [1, 13, 0]))


def rows_of(header: str, first: int, count: int = 50) -> bytes:
    """A file with rows of one width, numbered from the first."""
    return f"{header}\n".encode() + b"".join(
        b"a%03d,%03d\n" % (number, number) for number in range(first, first + count)
    )


@pytest.mark.parametrize(
    "other", [rows_of("sku,text", 5), rows_of("id,price", 0), b"x,y\n" + rows_of("sku,text", 0)[4:]]
)
def test_another_file_of_the_same_width_is_refused(other: bytes) -> None:
    """Lines end where they did, but they are others: the first rows were cut off, or the columns are new."""
    cursor = list(csv_rows(BytesIO(rows_of("sku,text", 0))))[9][1]

    with pytest.raises(CursorError, match=r"is not as it was|so the file has changed"):
        next(csv_rows(BytesIO(other), cursor))


def test_a_file_may_grow() -> None:
    """What is added at its end are more rows."""
    *_, (_, cursor) = csv_rows(BytesIO(rows_of("sku,text", 0)))

    assert [{"sku": "a050", "text": "050"}] == [row for row, _ in csv_rows(BytesIO(rows_of("sku,text", 0, 51)), cursor)]


_SHELLS: Final = frozenset({"os.system", "os.popen", "subprocess.getoutput", "asyncio.create_subprocess_shell"})


def shells_in(code: str) -> list[str]:
    """What in the code would have a shell read a text."""
    calls = [ast.unparse(node) for node in ast.walk(ast.parse(code)) if isinstance(node, ast.Call)]
    return [call for call in calls if call.partition("(")[0] in _SHELLS or "shell=True" in call]


def test_j46_no_name_of_a_file_comes_to_a_shell() -> None:
    """J-46: rows come of an open file, never of a name, and nothing in the library has a shell read a text."""
    folder = Path(lowkiq_lambda.__file__).parent

    assert ["os.system(name)", "run(name, shell=True)"] == shells_in("os.system(name)\nrun(name, shell=True)")
    assert {} == {path.name: found for path in folder.rglob("*.py") if (found := shells_in(path.read_text()))}
