"""Data that scikit-learn's users pass, as arrays of floats and labels: what is refused is refused by public facts.

Types, shapes and feature names are public, and a mistake in them is an error that names no value. Values are private
and never cause one: in arrays of Python objects, a cell that is not a real number counts as NaN.
"""

from __future__ import annotations

from decimal import Decimal
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse  # type: ignore[import-untyped]
from sklearn.utils.validation import check_array, column_or_1d, validate_data

from expost.errors import InvalidValue

_OBJECT = np.dtype(object)


def features_of(estimator: Any, X: Any, *, reset: bool) -> NDArray[np.float64]:  # noqa: N803
    """The features as floats; their number and names are noted on ``estimator``, or compared with those there."""
    rows = _floats(X, "features")
    if rows.ndim != 2:
        raise InvalidValue(f"features are a two-dimensional array, got {rows.ndim}. Reshape your data")
    validate_data(estimator, X, skip_check_array=True, reset=reset)
    return np.asarray(check_array(rows, ensure_all_finite=False, estimator=estimator, input_name="X"))


def note_features(estimator: Any, seen: Any) -> None:
    """Keep on ``estimator`` the number and names of features that were noted on ``seen``."""
    for name in ("n_features_in_", "feature_names_in_"):
        vars(estimator).pop(name, None)
        if hasattr(seen, name):
            setattr(estimator, name, getattr(seen, name))


def target_of(y: Any, size: int, name: str) -> NDArray[np.float64]:
    """A target as floats, one for each row."""
    return _one_each(_floats(_given(y, name), "targets"), size, "targets")


def labels_of(y: Any, size: int, name: str) -> NDArray[Any]:
    """Labels, one for each row: numbers or text by their dtype; or objects, of which anything may come."""
    dtype = _dtype(_given(y, name))
    check_label_type(dtype)
    return _one_each(np.asarray(y, dtype), size, "labels")


def check_label_type(dtype: np.dtype[Any]) -> None:
    """Refuse what no label is made of."""
    if dtype.kind not in "biufUSO" or (dtype.kind == "f" and dtype.itemsize > 8):
        raise InvalidValue(f"labels are whole numbers, floats of at most 64 bits or text, got {dtype.type.__name__}")


def numbers_of(labels: NDArray[Any], classes: NDArray[Any]) -> NDArray[np.float64]:
    """The number of each label's class; 0 for a label that is none of them."""
    if labels.dtype == _OBJECT or classes.dtype == _OBJECT:
        known = classes.tolist()
        return np.array([_number(label, known) for label in labels.tolist()], np.float64)
    if _family(labels.dtype) != _family(classes.dtype):
        raise InvalidValue(
            f"labels of type {labels.dtype.type.__name__} are never among classes of type "
            f"{classes.dtype.type.__name__}: declare the classes as they are in y"
        )
    found = np.zeros(len(labels))
    for number, label in enumerate(classes):
        found[labels == label] = number
    return found


def _given(y: Any, name: str) -> Any:
    if y is None:
        raise InvalidValue(f"{name} requires y to be passed, but the target y is None")
    return y


def _one_each(values: NDArray[Any], size: int, what: str) -> NDArray[Any]:
    column = np.asarray(column_or_1d(values, warn=True))
    if len(column) != size:
        raise InvalidValue(f"there are {size} rows of features and {len(column)} {what}: give one each")
    return column


def _floats(values: Any, what: str) -> NDArray[np.float64]:
    """All values as floats, cell by cell if each has a type of its own."""
    dtype = _dtype(values)
    if dtype.kind == "c":
        raise InvalidValue(f"Complex data not supported: {what} are real numbers, got {dtype.type.__name__}")
    if issparse(values):
        raise InvalidValue(f"sparse {what} are not supported: make them dense with .toarray()")
    if dtype.kind not in "biufO" or (dtype.kind != "O" and dtype.itemsize > 8):
        raise InvalidValue(f"{what} are whole numbers or floats of at most 64 bits, got {dtype.type.__name__}")
    if dtype.kind != "O":
        return np.asarray(values, np.float64)
    cells = np.asarray(values, object)
    with np.errstate(all="ignore"):
        return np.array([_cell(value) for value in cells.ravel()], np.float64).reshape(cells.shape)


def _dtype(values: Any) -> np.dtype[Any]:
    """The public type of all values; that of objects where each has its own, as in lists and many tables."""
    dtype = getattr(values, "dtype", None)
    columns = getattr(values, "dtypes", None)
    if dtype is None and columns is not None:
        kinds = list(columns)
        if kinds and all(isinstance(kind, np.dtype) and kind.kind in "biuf" for kind in kinds):
            return np.result_type(*kinds)
    return dtype if isinstance(dtype, np.dtype) else _OBJECT


def _family(dtype: np.dtype[Any]) -> str:
    return "number" if dtype.kind in "biuf" else dtype.kind


def _number(label: Any, known: list[Any]) -> int:
    """Where a label is among those known; 0 if it is not, or is neither text nor a real number."""
    return known.index(label) if isinstance(label, str | bytes | Real | np.bool_) and label in known else 0


def _cell(value: Any) -> float:
    """A real number as a float; NaN for anything else, and for what no float can hold."""
    if not isinstance(value, Real | Decimal | np.bool_):
        return np.nan
    try:
        return float(value)
    except (ArithmeticError, ValueError):
        return np.nan
