"""What requests and replies hold, for checks and for the OpenAPI document. Amounts are exact decimals, as texts."""

from __future__ import annotations

from collections.abc import Sized
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, StringConstraints, model_validator
from pydantic_core import PydanticCustomError

from expost.service.asked import MOST_DERIVED, MOST_QUESTIONS
from expost.service.lines import LONGEST_SAID, RULE, is_line

_MOST_FIELDS = 50
MOST_PARTS = 1000
_CHARGED = 7
"""Numbers of a charge."""


def sized(most: int, what: str) -> BeforeValidator:
    """How much a list or a mapping holds is looked at before each of its things is: their faults take longer."""

    def check(given: Any) -> Any:
        if isinstance(given, Sized) and len(given) > most:
            raise PydanticCustomError("too_long", "there are at most {most} {what} here", {"most": most, "what": what})
        return given

    return BeforeValidator(check)


def _line(text: str) -> str:
    if not is_line(text):
        raise PydanticCustomError("line", "this is not {rule}", {"rule": RULE})
    return text


Line = AfterValidator(_line)
"""Text that stands in the audit trail."""
ShortName = Annotated[str, StringConstraints(min_length=1, max_length=200, pattern=r"^[^\x00-\x1f/]+$"), Line]
AccountPath = Annotated[str, StringConstraints(min_length=1, max_length=500, pattern=r"^[^\x00-\x1f]+$")]
Text = Annotated[str, StringConstraints(min_length=1, max_length=LONGEST_SAID, pattern=r"^[^\x00-\x1f]+$"), Line]
Decimal = Annotated[str, StringConstraints(max_length=40, pattern=r"^[0-9]+(\.[0-9]+)?([eE]-?[0-9]{1,3})?$")]


class Given(BaseModel):
    """A request: no unknown fields, no other types."""

    model_config = ConfigDict(extra="forbid", strict=True)

    @model_validator(mode="before")
    @classmethod
    def _counted(cls, given: Any) -> Any:
        """A fault for each unknown field would take longer than the request is long."""
        if isinstance(given, dict) and len(given) > _MOST_FIELDS:
            raise PydanticCustomError("too_long", "a request has few fields: see /v1/openapi.json")
        return given


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

    questions: Annotated[list[dict[str, Any]], Field(max_length=MOST_QUESTIONS)] | None = None
    toml: Annotated[str, StringConstraints(max_length=100_000)] | None = None
    derive: Annotated[dict[str, str], Field(max_length=MOST_DERIVED), sized(MOST_DERIVED, "columns")] | None = None


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


class JobLine(Reply):
    """A job in a list: in review, accepted or done. Its result is in the job itself."""

    id: str
    account: str
    key: str
    data: str
    state: Literal["review", "accepted", "done"]
    accepted_at: str
    starts_at: str | None
    """Until then it can be cancelled; None while it waits for a review."""
    due_at: str | None
    """When its answer comes."""
    answered_at: str | None
    questions: list[str]
    outcome: str | None
    review: dict[str, str] | None


class JobModel(JobLine):
    """A job. The result is there when it is done."""

    result: dict[str, Any] | None


class AccountModel(Reply):
    """A balance, as of the last answer time."""

    account: str
    limit: CostModel
    spent: CostModel
    reserved: CostModel
    remaining: CostModel
    closed: bool


class AccountingModel(Reply):
    """What an account counts beside the basic sum: the ledger's meters, as text; none if there is only that sum."""

    meters: str | None
    basic_alone: bool


class ChargeModel(Given):
    """A charge in whole units: ε in 10⁻¹², δ in its unit, and what other meters count of it."""

    charge: Annotated[list[Annotated[int, Field(ge=0, lt=2**62)]], Field(min_length=_CHARGED, max_length=_CHARGED)]


class RoomModel(Reply):
    """Whether a charge would fit now."""

    fits: bool


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
    days: Annotated[float, Field(gt=0, le=3650)] | None = None
    """90 by default, or as long as the token that it is made with."""


class TokenModel(Reply):
    """A token, without its secret."""

    id: str
    role: str
    account: str
    name: str
    made_at: int
    expires_at: int
    revoked: bool
    maker: str | None


class MadeToken(TokenModel):
    """A new token: its secret is shown this once."""

    secret: str


class ReviewModel(Reply):
    """A job that waits for a custodian: what it asks, and what that would have cost when it was asked."""

    job: str
    account: str
    data: str
    accepted_at: str
    asked: dict[str, Any]
    plan: PlanModel


class ReviewDecision(Given):
    """What a custodian decides."""

    accept: bool
    reason: Text


class NewReservation(Given):
    """What an external engine wants to spend: ε for each part that may come out."""

    key: ShortName
    label: Text
    parts: Annotated[dict[ShortName, Decimal], Field(min_length=1, max_length=MOST_PARTS), sized(MOST_PARTS, "parts")]
    delta: Decimal = "0"
    lease: Annotated[float, Field(gt=0, le=86_400 * 7)]


class Settlement(Given):
    """The part that came out."""

    part: ShortName


class Health(Reply):
    """Whether it lives, or is ready."""

    status: str
