"""Requests made from the OpenAPI document: no 5xx, nothing outside the schema, and every 4xx leaves all balances."""

from __future__ import annotations

from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import response_schema_conformance, status_code_conformance

from expost import Cost, Ledger
from serving import Running, answer
from soak import SOAK

EXAMPLES = 60 if SOAK else 1
WHO = ("alice", "custodian", "auditor", "engine")
CHECKS: Any = [not_a_server_error, status_code_conformance, response_schema_conformance]


@pytest.fixture(scope="module")
def ledger(running: Running) -> Ledger:
    return running.ledger()


def balances(ledger: Ledger) -> tuple[tuple[str, Cost, Cost, Cost], ...]:
    return tuple((each.name, each.limit, each.spent, each.reserved) for each in (ledger, *ledger.accounts))


def test_whatever_is_sent(running: Running, ledger: Ledger) -> None:
    schema = schemathesis.openapi.from_url(f"{running.address}/v1/openapi.json")
    found: Any = schema.get_all_operations()
    operations = [each.ok() for each in found]
    assert len(operations) > 25
    for operation in operations:
        if operation.path == "/v1/events":
            continue  # it has no end; with once=true it is called by other tests

        @given(case=operation.as_strategy(), who=st.sampled_from(WHO))
        @settings(max_examples=EXAMPLES, deadline=None, database=None, suppress_health_check=list(HealthCheck))
        def send(case: Any, who: str) -> None:
            if case.path_parameters and "token_id" in case.path_parameters and case.method == "DELETE":
                case.path_parameters = {"token_id": "none"}
            if isinstance(case.query, dict) and "wait" in case.query:
                case.query["wait"] = 0
            headers = {"authorization": f"Bearer {running.secrets[who]}"}
            before = balances(ledger)
            reply = case.call(headers=headers, timeout=60)
            case.validate_response(reply, checks=CHECKS)
            if reply.status_code >= 400:
                assert balances(ledger) == before
            if reply.status_code == 202 and reply.json()["state"] == "accepted":
                with running.client(who) as client:
                    answer(client, reply.json()["id"])  # so that nothing is under way when the next one is sent

        send()
    ledger.verify()
