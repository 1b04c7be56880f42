"""Downloads over http and https, verified against the local certificate authority."""

import os
import re
import shutil
import ssl
from pathlib import Path
from urllib.parse import unquote, urlsplit
from urllib.request import urlopen

_TIMEOUT_SECONDS = 60


def original_name(url: str) -> str:
    """The file name at the end of the URL's path, with only characters that are safe in blob names."""
    name = Path(unquote(urlsplit(url).path)).name
    return re.sub(r"[^A-Za-z0-9._~-]", "_", name) or "imagery.tif"


def download(url: str, path: Path) -> None:
    """Store the body of ``url`` at ``path``.

    Trusts REQUESTS_CA_BUNDLE or SSL_CERT_FILE if set. Raises OSError if the server cannot be reached or refuses, and
    ValueError if the URL is not http or https.
    """
    if urlsplit(url).scheme not in ("http", "https"):
        raise ValueError("only http and https URLs can be downloaded")
    # OpenSSL reads SSL_CERT_FILE by itself.
    context = ssl.create_default_context(cafile=os.environ.get("REQUESTS_CA_BUNDLE"))
    with (
        urlopen(url, timeout=_TIMEOUT_SECONDS, context=context) as body,  # noqa: S310  the scheme is checked above
        path.open("wb") as file,
    ):
        shutil.copyfileobj(body, file)
