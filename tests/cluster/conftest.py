"""A bed for the tests of a module; without root or namespaces, they are skipped."""

from __future__ import annotations

import re
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tests import isolation

from .bed import Bed, why_not
from .operator import AGENT, Operator, Watch

HERE = Path(__file__).parent


@cache
def _hindrance() -> str:
    return why_not()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.parent == HERE:
            item.add_marker(pytest.mark.cluster)


@contextmanager
def made_bed(hosts: int, **settings: Any) -> Iterator[Bed]:
    """Make a bed whose hosts have these settings; skip the test if that is impossible."""
    if why := _hindrance():
        pytest.skip(why)
    base = Path(tempfile.mkdtemp(prefix="sdb-", dir=isolation.PLACE))
    try:
        with Bed(base, hosts=hosts, **settings) as bed:
            yield bed
    finally:
        shutil.rmtree(base, ignore_errors=True)


@pytest.fixture(scope="module")
def bed() -> Iterator[Bed]:
    """Two hosts with four slots each, whose agent is a child that counts its starts."""
    with made_bed(2, **AGENT) as bed:
        yield bed


@pytest.fixture(scope="module")
def bare_bed() -> Iterator[Bed]:
    """A host without settings, which has the agents that tests put into `bed.programs`."""
    with made_bed(1) as bed:
        yield bed


@pytest.fixture
def operator(bed: Bed, request: pytest.FixtureRequest) -> Iterator[Operator]:
    """An operator with a separate project; `operator.param` are keys below `hosts:`."""
    name = re.sub(r"[^a-z0-9]+", "-", request.node.name.removeprefix("test_"))[:40]
    with Operator(bed, name, **getattr(request, "param", {})).entered() as operator:
        yield operator


@pytest.fixture
def watch(operator: Operator) -> Iterator[Watch]:
    with operator.watched() as watch:
        yield watch
