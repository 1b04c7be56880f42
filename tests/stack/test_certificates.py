"""The throw-away certificate is trusted by what the environment says, and by nothing else."""

from __future__ import annotations

import asyncio
import ssl
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from threading import Thread

import pytest

from local.certificates import Certificates, create_certificates
from local.stack.environment import child_environment

ASK_WITH = {
    "requests": "import requests, sys; print(requests.get(sys.argv[1], timeout=10).text)",
    "urllib": "import sys, urllib.request; print(urllib.request.urlopen(sys.argv[1], timeout=10).read().decode())",
    "aiohttp": (
        "import aiohttp, asyncio, sys\n"
        "async def ask():\n"
        "    async with aiohttp.request('GET', sys.argv[1]) as answer: print(await answer.text())\n"
        "asyncio.run(ask())"
    ),
}
TRUST_VARIABLES = ("REQUESTS_CA_BUNDLE", "SSL_CERT_FILE", "CURL_CA_BUNDLE", "GDAL_CURL_CA_BUNDLE")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return create_certificates(tmp_path_factory.mktemp("made"))


@pytest.fixture(scope="module")
def port(made: Certificates) -> Iterator[int]:
    """An https server that answers `hello` with the made certificate."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(made.certificate, made.key)

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello")
        await writer.drain()
        writer.close()

    loop = asyncio.new_event_loop()
    server = loop.run_until_complete(asyncio.start_server(answer, "127.0.0.1", 0, ssl=context))
    thread = Thread(target=loop.run_forever)
    thread.start()
    yield server.sockets[0].getsockname()[1]
    loop.call_soon_threadsafe(loop.stop)
    thread.join()
    server.close()
    loop.run_until_complete(loop.shutdown_asyncgens())
    loop.close()


def ask(program: str, url: str, environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", ASK_WITH[program], url]
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=False)


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
@pytest.mark.parametrize("program", ASK_WITH)
def test_the_environment_alone_makes_it_trusted(made: Certificates, port: int, program: str, host: str) -> None:
    answer = ask(program, f"https://{host}:{port}/", child_environment(made.environment()))
    assert (answer.returncode, answer.stdout.strip()) == (0, "hello"), answer.stderr


@pytest.mark.parametrize("program", ASK_WITH)
def test_without_the_environment_it_is_refused(port: int, program: str) -> None:
    plain = {name: value for name, value in child_environment().items() if name not in TRUST_VARIABLES}
    answer = ask(program, f"https://127.0.0.1:{port}/", plain)
    assert answer.returncode != 0
    assert "CERTIFICATE_VERIFY_FAILED" in answer.stderr


def test_each_authority_trusts_only_its_own_server(port: int, tmp_path: Path) -> None:
    another = create_certificates(tmp_path)
    answer = ask("requests", f"https://127.0.0.1:{port}/", child_environment(another.environment()))
    assert "CERTIFICATE_VERIFY_FAILED" in answer.stderr


def test_the_private_key_is_its_owners_alone(made: Certificates) -> None:
    assert made.key.stat().st_mode & 0o077 == 0
    assert sorted(path.name for path in made.key.parent.iterdir()) == ["authority.pem", "server-key.pem", "server.pem"]


@pytest.mark.parametrize(("trusting", "says"), [(True, "not recognized"), (False, "certificate")])
def test_gdal_trusts_it_too(made: Certificates, port: int, trusting: bool, says: str) -> None:
    """What the server sends is no image; what counts is that GDAL gets as far as reading it."""
    environment = child_environment(made.environment() if trusting else {})
    for name in () if trusting else TRUST_VARIABLES:
        environment.pop(name, None)
    program = "import rasterio, sys; rasterio.open('/vsicurl/' + sys.argv[1])"
    command = [sys.executable, "-c", program, f"https://127.0.0.1:{port}/image.tif"]
    answer = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=False)
    assert says in answer.stderr
