"""No credential survives, wherever it is."""

from __future__ import annotations

import base64
import json
import time
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.telemetry.redaction import MARK, redact, redact_value

SIGNATURE = "q9Z1x8mT0uYb2nWc4VdE6fGhI7jKlMnOpQrStUvWxYz="
ACCOUNT_KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
TOKEN = "eyJhbGciOiJub25lIn0.eyJhdWQiOiJodHRwczovL3N0b3JhZ2UifQ.c2lnbmF0dXJl"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "https://a.blob.core.windows.net/data/x.tif?sv=1&sig=ab%2Bc%3D",
            f"https://a.blob.core.windows.net/data/x.tif?{MARK}",
        ),
        ("see 'https://a/x?y=1', then https://b/z?w", f"see 'https://a/x?{MARK}', then https://b/z?{MARK}"),
        ("with url: /data/x?sv=1&sig=abc%3D (Caused by", f"with url: /data/x?sv=1&sig={MARK} (Caused by"),
        ("AccountName=a;AccountKey=abc==;EndpointSuffix=x", f"AccountName=a;AccountKey={MARK};EndpointSuffix=x"),
        (
            "BlobEndpoint=https://a/;SharedAccessSignature=sv=1&sig=x",
            f"BlobEndpoint=https://a/;SharedAccessSignature={MARK}",
        ),
        (f"Authorization: Bearer {TOKEN}", f"Authorization: Bearer {MARK}"),
        ("Authorization: SharedKey account:abc=", f"Authorization: SharedKey {MARK}"),
        ("'Authorization': 'SharedKeyLite account:abc='", f"'Authorization': 'SharedKeyLite {MARK}'"),
        (f"token {TOKEN}.", f"token {MARK}."),
        (f"the key {ACCOUNT_KEY} itself", f"the key {MARK} itself"),
        (f"<Value>{SIGNATURE}</Value>", f"<Value>{MARK}</Value>"),
        ("{'sig': 'abc%3D', \"account_key\": \"abc\"}", f"{{'sig': '{MARK}', \"account_key\": \"{MARK}\"}}"),
        ("https%3A%2F%2Fa%2Fx%3Fsv%3D1%26sig%3Dabc%253D", f"https%3A%2F%2Fa%2Fx%3Fsv%3D1%26sig%3D{MARK}"),
    ],
)
def test_credentials_are_taken_out_and_the_rest_stays(text: str, expected: str) -> None:
    assert redact(text) == expected
    assert redact(expected) == expected


@pytest.mark.parametrize(
    "text",
    [
        "",
        "why? because",
        "design=5, assignment: 7",
        "task trn-0f5c1c9e-57ab-5f0c-9d0c-0a1b2c3d4e5f on h100-pool",
        "https://account.blob.core.windows.net/data/8d47eea41b2d6b8b6df8fd702531b8a1/model_1.json",
        "0x8DD1234567890AB",
        "2026-11-30T12:00:00.000000+00:00: training completed",
        "8d47eea41b2d6b8b6df8fd702531b8a1b7631a553d109c6e6168e0461d793eaa",
    ],
)
def test_what_is_no_credential_stays(text: str) -> None:
    assert redact(text) == text


base64_bytes = st.binary(min_size=32, max_size=64).map(lambda raw: base64.b64encode(raw).decode())
tokens = st.binary(min_size=24, max_size=60).map(
    lambda raw: ".".join(["eyJhbGciOiJub25l", *(base64.urlsafe_b64encode(raw).decode().rstrip("=") for _ in "12")])
)
secrets_in_form = st.one_of(
    base64_bytes.map(lambda key: (key, f"https://account.blob.core.windows.net/data/x?sv=1&sig={quote(key, safe='')}")),
    base64_bytes.map(lambda key: (quote(key, safe=""), f"/data/x?sv=1&sp=r&sig={quote(key, safe='')}&se=2")),
    base64_bytes.map(lambda key: (key, f"sig={key}")),
    base64_bytes.map(lambda key: (key, f"https://open.example.org/wms?apikey={key}")),
    base64_bytes.map(lambda key: (key, f"DefaultEndpointsProtocol=https;AccountName=a;AccountKey={key}")),
    base64_bytes.map(lambda key: (key, f"AccountKey={key};QueueEndpoint=https://a")),
    base64_bytes.map(lambda key: (key, f"SharedAccessSignature=sv=1&sig={key}")),
    base64_bytes.map(lambda key: (key, f"Authorization: SharedKey account:{key}")),
    tokens.map(lambda token: (token, f"Bearer {token}")),
    tokens.map(lambda token: (token, f"token={token}")),
)
texts = st.text(max_size=30)


@given(before=texts, secret=secrets_in_form, after=texts)
def test_a_credential_anywhere_in_a_text_is_gone(before: str, secret: tuple[str, str], after: str) -> None:
    redacted = redact(before + secret[1] + after)
    assert secret[0] not in redacted
    assert redact(redacted) == redacted


keys = st.sampled_from(["event", "url", "a b", "headers", "list"])
plain = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False), texts)


@st.composite
def nested(draw: st.DrawFn) -> tuple[str, object]:
    """A credential, and a value of many layers that holds it."""
    secret, text = draw(secrets_in_form)
    value: object = draw(
        st.sampled_from([text, text.encode(), ValueError(text), {text: 1}, {"sig": secret}, {"Account-Key": secret}])
    )
    for layer in draw(st.lists(st.sampled_from(["dict", "list", "tuple", "set", "object"]), max_size=16)):
        if layer == "dict":
            value = {draw(keys): draw(plain), "at": value}
        elif layer == "list":
            value = [draw(plain), value]
        elif layer == "tuple":
            value = (value, draw(plain))
        elif layer == "set":
            value = {str(value)}
        else:
            value = Exception(value)
    return secret, value


@given(nested())
def test_a_credential_anywhere_in_a_value_is_gone_and_the_value_is_json(held: tuple[str, object]) -> None:
    secret, value = held
    redacted = redact_value(value)
    assert secret not in json.dumps(redacted, ensure_ascii=False)
    assert secret not in str(redacted)


def test_a_value_that_holds_itself_ends() -> None:
    loop: dict[str, object] = {"sig": "secret"}
    loop["self"] = loop
    assert "secret" not in json.dumps(redact_value(loop))


@pytest.mark.parametrize("unit", ["a", "sig", "://", "eyJ", "?", "A1+/", "bearer ", "=", "accountkey", "'", "."])
def test_long_texts_stay_cheap(unit: str) -> None:
    """Eight times the text may take twenty-four times as long on a busy machine, but not sixty-four: its square."""
    short, long = unit * 4_000, unit * 32_000

    def cost(text: str) -> float:
        costs = []
        for _ in range(3):
            started = time.process_time()
            redact(text)
            costs.append(time.process_time() - started)
        return min(costs)

    assert cost(long) < 24 * max(cost(short), 0.002)
