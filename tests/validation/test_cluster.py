"""A cluster worker's handling of a task that takes too long, dies, or has an error."""

import os
import time

import pytest

from loopcheck.robots.errors import HarnessError
from loopcheck.validation.execution.cluster import computed
from loopcheck.validation.execution.journal import Task
from loopcheck.validation.execution.workers import WorkerFailure
from loopcheck.validation.public_models.fetching import want_remote


def test_a_task_that_takes_too_long_is_stopped_and_the_next_is_computed() -> None:
    start = time.monotonic()
    assert computed(Task(time.sleep, (60,)), 3.0) == WorkerFailure("timeout after 3 s")
    assert time.monotonic() - start < 30
    assert computed(Task(abs, (-2,)), 30.0) == 2


def test_a_task_whose_process_dies_takes_nothing_along() -> None:
    lost = computed(Task(os._exit, (3,)), 30.0)
    assert isinstance(lost, WorkerFailure)
    assert lost.reason.startswith("its process died")
    assert computed(Task(os.getpid, ()), 30.0) != os.getpid()


def test_an_error_of_ours_is_raised_and_a_bug_is_a_reason() -> None:
    with pytest.raises(HarnessError, match="must begin with"):
        computed(Task(want_remote, ("ext::sh",)), 30.0)
    assert isinstance(computed(Task(abs, ("text",)), 30.0), WorkerFailure)
