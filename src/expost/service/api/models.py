"""What requests and replies hold, for checks and for the OpenAPI document. Amounts are exact decimals, as texts."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

ShortName = Annotated[str, StringConstraints(min_length=1, max_length=200, pattern=r"^[^\x00-\x1f/]+$")]
AccountPath = Annotated[str, StringConstraints(min_length=1, max_length=500, pattern=r"^[^\x00-\x1f]+$")]
Text = Annotated[str, StringConstraints(min_length=1, max_length=2000, pattern=r"^[^\x00]+$")]
Decimal = Annotated[str, StringConstraints(max_length=40, pattern=r"^[0-9]+(\.[0-9]+)?([eE]-?[0-9]{1,3})?$")]


class Given(BaseModel):
    """A request: no unknown fields, no other types."""

    model_config = ConfigDict(extra="forbid", strict=True)


class Reply(BaseModel):
    """A reply."""

    model_config = ConfigDict(extra="forbid")


class CostModel(Reply):
    """ε and δ, exact."""

    epsilon: str
    delta: str


class FaultModel(Reply):
    """What is wrong, and where."""

    pointer: str
    detail: str
    line: int | None = None


class ProblemModel(BaseModel):
    """Refusal details (RFC 9457), with a JSON pointer to each fault."""

    model_config = ConfigDict(extra="allow")
    type: str
    title: str
    status: int
    detail: str
    errors: list[FaultModel] | None = None
    error: str | None = None
    incident: str | None = None
    requested: CostModel | None = None
    affordable: CostModel | None = None


class Ask(Given):
    """Questions, as JSON or as a study's TOML, and columns computed for them."""

    questions: list[dict[str, Any]] | None = None
    toml: Annotated[str, StringConstraints(max_length=100_000)] | None = None
    derive: dict[str, str] | None = None


class DataModel(Reply):
    """A data set: public facts only."""

    name: str
    title: str
    ledger: str
    unit: str
    who: str
    rows: int | None
    groups: int | None
    neighbours: str
    size: int | None
    schema_: dict[str, str] = Field(alias="schema")
    bounds: dict[str, list[float]]
    derive: dict[str, str]
    kinds: list[str]
    review: bool
    synthetic: bool
    version: str


class KeyModel(Reply):
    """A key of a question."""

    name: str
    type: str
    help: str
    required: bool
    choices: list[str]


class KindModel(Reply):
    """A kind of question."""

    name: str
    help: str
    keys: list[KeyModel]
    delta: bool
    example: str


class PlanLineModel(Reply):
    """What a question would cost."""

    name: str
    kind: str
    label: str
    worst: CostModel | None
    best: CostModel | None
    fit: str
    why: str
    expected: str | None


class PlanModel(Reply):
    """What questions would cost."""

    questions: list[PlanLineModel]
    before: CostModel
    remaining_worst: CostModel
    remaining_best: CostModel
    fits: bool


class JobModel(Reply):
    """A job: in review, accepted or done. The result is there when it is done."""

    id: str
    account: str
    key: str
    data: str
    state: Literal["review", "accepted", "done"]
    accepted_at: str
    answered_at: str | None
    questions: list[str]
    result: dict[str, Any] | None
    review: dict[str, str] | None


class AccountModel(Reply):
    """A balance, as of the last answer time."""

    account: str
    limit: CostModel
    spent: CostModel
    reserved: CostModel
    remaining: CostModel
    closed: bool


class EntryModel(Reply):
    """An entry of the ledger, without its output."""

    entry: int
    when: str
    account: str
    what: str
    operation: str
    state: str
    part: Any
    reserved: CostModel
    charged: CostModel | None
    refunded: CostModel | None


class EventModel(Reply):
    """A line of the audit trail, and its hash."""

    line: str
    hash: str
    sequence: int


class HeadModel(Reply):
    """The end of a trail."""

    ledger: str
    sequence: int
    hash: str


class NewAccount(Given):
    """An account below one's own."""

    account: AccountPath
    epsilon: Decimal
    delta: Decimal = "0"


class NewLimit(Given):
    """A limit that is nowhere below the old one."""

    account: AccountPath
    epsilon: Decimal | None = None
    delta: Decimal | None = None
    reason: Text


class Closing(Given):
    """The end of an account."""

    account: AccountPath
    reason: Text


class NewToken(Given):
    """A token to be made."""

    role: Literal["custodian", "analyst", "auditor", "engine"]
    account: AccountPath
    name: ShortName
    days: Annotated[float, Field(gt=0, le=3650)] = 90


class TokenModel(Reply):
    """A token, without its secret."""

    id: str
    role: str
    account: str
    name: str
    made_at: int
    expires_at: int
    revoked: bool


class MadeToken(TokenModel):
    """A new token: its secret is shown this once."""

    secret: str


class ReviewModel(Reply):
    """A job that waits for a custodian: what it asks, and what that would cost."""

    job: str
    account: str
    data: str
    accepted_at: str
    asked: dict[str, Any]
    plan: PlanModel | None


class ReviewDecision(Given):
    """What a custodian decides."""

    accept: bool
    reason: Text


class NewReservation(Given):
    """What an external engine wants to spend: ε for each part that may come out."""

    key: ShortName
    label: Text
    parts: Annotated[dict[ShortName, Decimal], Field(min_length=1, max_length=1000)]
    delta: Decimal = "0"
    lease: Annotated[float, Field(gt=0, le=86_400 * 7)]


class Settlement(Given):
    """The part that came out."""

    part: ShortName


class Health(Reply):
    """Whether it lives, or is ready."""

    status: str
