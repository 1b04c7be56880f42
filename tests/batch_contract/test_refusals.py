"""What is refused arrives as the SDK's exception, with the service's status, code, texts and request id."""

from __future__ import annotations

from typing import Any

import pytest
from azure.batch import models
from azure.core.exceptions import HttpResponseError

from tests.batch_contract.refusals import REFUSALS, Refusal
from tests.batch_contract.stand import Stand


@pytest.mark.parametrize("refusal", REFUSALS, ids=str)
def test_a_refused_call(stand: Stand, refusal: Refusal) -> None:
    refusal.before(stand)

    with pytest.raises(HttpResponseError) as refused:
        refusal.call(stand.client)

    error = refused.value
    assert (type(error), error.status_code) == (refusal.error, refusal.status)
    response: Any = error.response
    assert response.headers["request-id"]
    if refusal.method == "download_task_file":  # a stream: the SDK leaves the body unread
        response.read()
        assert response.json()["code"] == refusal.code
    elif refusal.code is None:
        assert (error.error, error.model) == (None, None)
    else:
        assert error.error
        assert isinstance(error.model, models.BatchError)
        assert error.error.code == error.model.code == refusal.code
        assert error.model.message
        assert error.model.message.lang == "en-US"
        assert error.model.message.value == error.error.message
        assert "\nRequestId:" in str(error.error.message)


def test_the_values_of_an_error_name_what_is_wrong(stand: Stand) -> None:
    with pytest.raises(HttpResponseError) as refused:
        list(stand.client.list_pools(filter="colour eq 'red'"))

    model = refused.value.model
    assert isinstance(model, models.BatchError)
    values = {value.key: value.value for value in model.error_values or ()}
    assert (values["QueryParameterName"], values["QueryParameterValue"]) == ("$filter", "colour eq 'red'")
    assert values["Reason"]
