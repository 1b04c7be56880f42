from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from local.producer import synthetic
from tests.images.tasks import imagery_task, model_task, sample_command_line


class _QuietHandler(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: Any) -> None:
        pass


class ImageryServer:
    """Serves the files of ``directory``; its certificate, if any, comes from the test."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), partial(_QuietHandler, directory=directory))
        self.scheme = "http"

    def url(self, name: str) -> str:
        return f"{self.scheme}://127.0.0.1:{self.server.server_port}/{name}?sv=2026&sig=secret"


@pytest.fixture(scope="session")
def imagery_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ImageryServer]:
    server = ImageryServer(tmp_path_factory.mktemp("imagery"))
    (server.directory / "cedar_pre.tif").write_bytes(synthetic.imagery(after_event=False))
    (server.directory / "cedar_post.tif").write_bytes(synthetic.imagery(after_event=True))
    thread = Thread(target=server.server.serve_forever)
    thread.start()
    yield server
    server.server.shutdown()
    thread.join()
    server.server.server_close()


@pytest.fixture(scope="session")
def prepared(imagery_server: ImageryServer, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The working directory of a finished imagery task."""
    task = imagery_task(
        tmp_path_factory.mktemp("imageryprep"),
        pre_event_imagery_urls=[imagery_server.url("cedar_pre.tif")],
        post_event_imagery_urls=[imagery_server.url("cedar_post.tif")],
    )
    finished = task.run("imageryprep", sample_command_line("imageryprep"))
    assert finished.returncode == 0, finished.stderr
    return task.directory


@pytest.fixture(scope="session")
def trained(prepared: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The working directory of a finished training task."""
    task = model_task(tmp_path_factory.mktemp("training"), "training", prepared)
    finished = task.run("training", sample_command_line("training"))
    assert finished.returncode == 0, finished.stderr
    return task.directory
