"""Keys that several kinds of questions have."""

from __future__ import annotations

from expost.study.grammar import Key

WHERE = Key("where", "text", "only rows for which this is true: age >= 18 AND city <> 'Rome'")
DROPPED = Key("missing", "number", "what an empty value counts as; by default it does not count")
EMPTY = Key("missing", "number", f"{DROPPED.help}. A number makes answers better where every unit has one row")
FILLED = Key(
    "missing",
    "number",
    "what an empty value counts as: every unit has a value here, and none is left out",
    required=True,
)
COLUMN = Key("column", "text", "a column, or an expression such as cost / 100", required=True)
ACCURACY = Key(
    "accuracy",
    "accuracy",
    "instead of an ε: how far off noise may put the answer, with 95 % confidence, as a number, or as a share of the "
    'truth such as "2 %". As little ε as that takes is charged; a share reserves all that remains, or the ε stated '
    "beside it",
)
COUNTED = Key("count", "text", "what is counted: rows, or units", choices=("rows", "units"), setting="of")
NOISE = Key(
    "noise",
    "text",
    "laplace, the default; gaussian, which needs a delta, unless accounting is renyi; or best, the more accurate one",
    choices=("laplace", "gaussian", "best"),
    needs_delta=("gaussian", "best"),
)
SUMS_NOISE = Key(
    "noise",
    "text",
    "laplace, the default; or gaussian, which needs a delta, unless accounting is renyi",
    choices=("laplace", "gaussian"),
    needs_delta=("gaussian",),
)
FEATURES = Key("features", "texts", "the columns that explain", required=True)
TARGET = Key("target", "text", "the column that is explained", required=True)
FEATURE_BOUNDS = Key("bounds", "pair", "features are moved into these bounds", required=True)
TARGET_BOUNDS = Key("target_bounds", "pair", "the target is moved into these bounds", required=True)
QUANTILE = Key("quantile", "number", "which one, between 0 and 1", required=True)
