"""HASTE's ids, as pydantic types: what goes into blob names, task ids and commands is held to these rules."""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import AfterValidator

_GUID = r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}"


def _matching(pattern: str, rule: str) -> AfterValidator:
    def check(value: str) -> str:
        if re.fullmatch(pattern, value, re.ASCII) is None:
            raise ValueError(rule)
        return value

    return AfterValidator(check)


def is_guid(value: str) -> bool:
    """Whether a text of a record is an id that may go into a blob name."""
    return re.fullmatch(_GUID, value, re.ASCII) is not None


Guid = Annotated[str, _matching(_GUID, "must be a GUID")]
ModelId = Annotated[str, _matching(r"\d{1,8}", "must be 1 to 8 digits")]
BatchJobId = Annotated[str, _matching(r"[A-Za-z0-9_-]{1,64}", "must be a Batch job id")]
HasteTaskId = Annotated[str, _matching(rf"[a-z]{{3}}-{_GUID}", "must be a HASTE task id, <prefix>-<GUID>")]
