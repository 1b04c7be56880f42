"""Every contract test runs twice: in this process, and over https."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from azure.batch import BatchClient
from azure.core.credentials import AzureNamedKeyCredential

from local.batch import ACCOUNT_KEY, InProcessTransport
from local.batch.server import server_context
from local.certificates import Certificates
from tests.batch_contract.stand import Stand, make_world
from tests.support.serving import serving

_KEY = AzureNamedKeyCredential("localbatch", ACCOUNT_KEY)


@pytest.fixture(params=["in-process", "https"])
def stand(request: pytest.FixtureRequest) -> Iterator[Stand]:
    world = make_world()
    if request.param == "in-process":
        transport = InProcessTransport(world)
        yield Stand(BatchClient("https://batch.local", _KEY, transport=transport, retry_total=0), world)
        return
    certificates: Certificates = request.getfixturevalue("certificates")
    context = server_context(str(certificates.certificate), str(certificates.key))
    with serving(world, context) as endpoint, BatchClient(endpoint, _KEY, retry_total=0) as client:
        yield Stand(client, world)
