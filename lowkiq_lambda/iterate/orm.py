"""Rows as objects: of a queryset of Django, or of a select of SQLAlchemy. Each library is imported in its call."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from lowkiq_lambda.iterate.keys import Key, key_of, pages_of_rows
from lowkiq_lambda.iterate.pairs import Pairs

if TYPE_CHECKING:
    from django.db.models import QuerySet
    from sqlalchemy import Column, ColumnElement
    from sqlalchemy.orm import Session

_SAME = "keyset_same"


def django(  # noqa: PLR0913 - all but two are given by name
    queryset: "QuerySet[Any]",
    by: str | Sequence[str] = "pk",
    after: Sequence[Any] | None = None,
    *,
    size: int = 500,
    until: Sequence[Any] | None = None,
    count: bool = True,
) -> Pairs[Any, Key]:
    """The objects of a queryset, ordered by its model's fields `by`; the cursor is a list of their values.

    Pages of `size` rows are read as `keyset` reads them. `by` names fields of the model that are never NULL and
    together different in each row. `Meta.ordering` is not used. `until`, `count`, and what a row may not change
    meanwhile: as of `keyset`. Raises ValueError for a queryset that is sliced, ordered or of other rows than objects,
    for other fields, and for rows with equal values, as a join makes them.
    """
    from django.db.models import Case, IntegerField, Q, Value, When  # noqa: PLC0415 - only in a project of Django

    names = _fields(queryset, [by] if isinstance(by, str) else by)
    before, last = key_of("django", after, names), key_of("django", until, names)

    def beyond(key: Key, sign: str, *, inclusive: bool) -> "Q":
        condition = Q(**{f"{names[-1]}__{sign}{'e' * inclusive}": key[-1]})
        for name, value in reversed([*zip(names[:-1], key[:-1], strict=True)]):
            # The first part is for the index on the first field.
            condition = Q(**{f"{name}__{sign}e": value}) & (Q(**{f"{name}__{sign}": value}) | condition)
        return condition

    within = queryset.order_by(*names)
    if last is not None:
        within = within.filter(beyond(last, "lt", inclusive=True))

    def read(cursor: Key | None, limit: int) -> list[tuple[Any, Key, bool]]:
        if cursor is None:
            rows = list(within[:limit])
        else:
            equal = When(**dict(zip(names, cursor, strict=True)), then=Value(1))
            marked = Case(equal, default=Value(0), output_field=IntegerField())
            rows = list(within.filter(beyond(cursor, "gt", inclusive=True)).annotate(**{_SAME: marked})[:limit])
        keys = [[getattr(row, name) for name in names] for row in rows]
        return [(row, key, bool(vars(row).pop(_SAME, 0))) for row, key in zip(rows, keys, strict=True)]

    def total() -> int:
        return (within if before is None else within.filter(beyond(before, "gt", inclusive=False))).count()

    return pages_of_rows("django", read, columns=names, after=before, size=size, count=total if count else lambda: None)


def sqlalchemy(  # noqa: PLR0913 - all but three are given by name
    session: "Session",
    statement: Any,  # noqa: ANN401 - a Select: its type has other parameters in each version of SQLAlchemy
    by: Any,  # noqa: ANN401 - an attribute of a mapped class, a column, or a sequence of them
    after: Sequence[Any] | None = None,
    *,
    size: int = 500,
    until: Sequence[Any] | None = None,
    count: bool = True,
) -> Pairs[Any, Key]:
    """The objects of a select, ordered by its columns `by`; the cursor is a list of their values.

    Pages of `size` rows are read as `keyset` reads them. `by` is `Order.id`, or a list of such columns, which are never
    NULL and together different in each row. A select of several things gives rows of SQLAlchemy, with the values of
    `by` and a number more at their end. A commit expires the objects of the page, unless the session has
    `expire_on_commit=False`. `until`, `count`: as of `keyset`. Raises ValueError for a select with an order or a limit,
    for other columns, and for rows with equal values, as a join makes them.
    """
    from sqlalchemy import and_, case, func, literal, or_, select  # noqa: PLC0415 - only where it is in use
    from sqlalchemy.exc import InvalidRequestError  # noqa: PLC0415 - as above

    columns = _columns(statement, by if isinstance(by, list | tuple) else [by])
    names = [column.name for column in columns]
    before, last = key_of("sqlalchemy", after, names), key_of("sqlalchemy", until, names)

    def beyond(key: Key, sign: str, *, inclusive: bool) -> Any:  # noqa: ANN401 - a condition of SQLAlchemy
        condition: Any = columns[-1].op(f"{sign}{'=' * inclusive}", is_comparison=True)(key[-1])
        for column, value in reversed([*zip(columns[:-1], key[:-1], strict=True)]):
            # The first part is for the index on the first column.
            strict, wide = (column.op(f"{sign}{end}", is_comparison=True)(value) for end in ("", "="))
            condition = and_(wide, or_(strict, condition))
        return condition

    within = statement if last is None else statement.where(beyond(last, "<", inclusive=True))
    width = len(names) + 1
    is_alone = len(statement.column_descriptions) == 1

    def read(cursor: Key | None, limit: int) -> list[tuple[Any, Key, bool]]:
        same: ColumnElement[int] = literal(0)
        pages = within.order_by(*columns).limit(limit)
        if cursor is not None:
            equal = and_(*(column == value for column, value in zip(columns, cursor, strict=True)))
            same, pages = case((equal, 1), else_=0), pages.where(beyond(cursor, ">", inclusive=True))
        labelled = [column.label(f"keyset_{position}") for position, column in enumerate(columns)]
        result = session.execute(pages.add_columns(*labelled, same.label(_SAME)))
        try:
            rows = result.all()
        except InvalidRequestError as error:
            raise ValueError(f"iterate.sqlalchemy cannot read {error}: load collections by selectinload") from error
        return [(row[0] if is_alone else row, list(row[-width:-1]), bool(row[-1])) for row in rows]

    def total() -> int | None:
        counted = within if before is None else within.where(beyond(before, ">", inclusive=False))
        return session.scalar(select(func.count()).select_from(counted.with_only_columns(*columns).subquery()))

    return pages_of_rows(
        "sqlalchemy", read, columns=names, after=before, size=size, count=total if count else lambda: None
    )


def _fields(queryset: "QuerySet[Any]", by: Sequence[str]) -> list[str]:
    """The names of the attributes that have the values of these fields."""
    from django.core.exceptions import FieldDoesNotExist  # noqa: PLC0415 - only in a project of Django
    from django.db.models.query import ModelIterable  # noqa: PLC0415 - as above

    query, options = queryset.query, queryset.model._meta  # noqa: SLF001 - Django documents it
    if query.is_sliced or query.combinator:
        raise ValueError("iterate.django takes a queryset that is not sliced and no union: it reads pages itself")
    if query.order_by or query.extra_order_by:
        raise ValueError("iterate.django takes a queryset without order_by: it orders by `by`")
    if queryset._iterable_class is not ModelIterable:  # noqa: SLF001 - no public name tells values() from objects
        raise ValueError("iterate.django takes a queryset of objects, not of values() or values_list()")
    fields = list[Any]()
    for name in by:
        try:
            fields += options.pk_fields if name == "pk" else [options.get_field(name)]
        except FieldDoesNotExist:
            raise ValueError(f"by: {options.object_name} has no field {name!r}") from None
    if not fields:
        raise ValueError("by names at least one field")
    for field in fields:
        if not getattr(field, "column", None):
            raise ValueError(f"by: {field.name!r} is not a column of {options.object_name}")
        if field.null:
            raise ValueError(f"by: {field.name!r} may be NULL, which has no place in the order")
    return [field.attname for field in fields]


def _columns(statement: Any, by: Sequence[Any]) -> "list[Column[Any]]":  # noqa: ANN401 - as above
    """The columns of these attributes, or themselves."""
    from sqlalchemy import Column  # noqa: PLC0415 - only where it is in use

    if statement._order_by_clauses:  # noqa: SLF001 - no public name has it
        raise ValueError("iterate.sqlalchemy takes a select without order_by: it orders by `by`")
    if statement._has_row_limiting_clause:  # noqa: SLF001 - as above
        raise ValueError("iterate.sqlalchemy takes a select without a limit: it reads pages itself")
    if not by:
        raise ValueError("by has at least one column")
    columns = [each.__clause_element__() if hasattr(each, "__clause_element__") else each for each in by]
    for column in columns:
        if not isinstance(column, Column):
            raise ValueError(f"by: {column} is not a column of a table")  # noqa: TRY004 - which argument
        if not any(each.is_derived_from(column.table) for each in statement.get_final_froms()):
            raise ValueError(f"by: the select does not have the table of {column}")
        if column.nullable:
            raise ValueError(f"by: {column} may be NULL, which has no place in the order")
    return columns
