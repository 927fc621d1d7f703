"""The service as it was when its books were a stopwatch: for the control of the test that looks for one."""

from __future__ import annotations

import json
from collections.abc import Callable

from expost.data.stopping import Stopper
from expost.ledger.journal import Posting, post
from expost.service.jobs import ServiceJob
from expost.service.runner import Runner


def post_when_done() -> None:
    """From now on the ledger gets a job's entries, and loses its hold, when it is done; not at its answer time."""
    outcome = Runner._outcome

    def posted(self: Runner, job: ServiceJob, between: Callable[[], None], stopper: Stopper) -> tuple[str, str]:
        result, postings = outcome(self, job, between, stopper)
        post(self._served[job.data].account(job.path), [Posting.from_json(each) for each in json.loads(postings)])
        free = "UPDATE expost_job SET charge = NULL WHERE number = ?"
        self._jobs._database.write(lambda run: run(free, job.number))
        return result, postings

    Runner._outcome = posted  # type: ignore[method-assign]
