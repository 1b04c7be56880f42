"""The access tokens of the local identity endpoint."""

from __future__ import annotations

import base64
import json

TENANT_ID = "00000000-0000-0000-0000-000000000001"
OBJECT_ID = "11111111-1111-1111-1111-111111111111"
ISSUER = f"https://sts.windows.net/{TENANT_ID}/"


def make_token(resource: str, now_epoch_seconds: int, life_seconds: int) -> str:
    """An unsigned JWT for `resource`, with every claim that Azurite looks at.

    Azurite checks the issuer's prefix, the audience and the three times, and takes `oid` and `tid` into the user
    delegation key. It does not check a signature, hence `alg: none`: the token is worth nothing outside the machine.
    """
    claims = {
        "aud": resource,
        "iss": ISSUER,
        "iat": now_epoch_seconds,
        "nbf": now_epoch_seconds,
        "exp": now_epoch_seconds + life_seconds,
        "oid": OBJECT_ID,
        "tid": TENANT_ID,
    }
    return f"{_encode({'alg': 'none', 'typ': 'JWT'})}.{_encode(claims)}.{_encode('local')}"


def _encode(value: object) -> str:
    return base64.urlsafe_b64encode(json.dumps(value).encode()).rstrip(b"=").decode()
