"""Blob names, and URLs of HASTE's records back to blob names."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.haste import paths
from tests.support import samples
from tests.support.memory_blobs import SAS, MemoryBlobs

NAME = f"{samples.FOLDER}/img-1/x.tif"
AZURE = MemoryBlobs(base_url="https://acct.blob.core.windows.net/data")
AZURITE = MemoryBlobs(base_url="https://127.0.0.1:10000/acct/data")


def test_names() -> None:
    project, layer, model = samples.PROJECT_ID, samples.LAYER_ID, samples.MODEL_ID
    assert paths.project_folder(project) == samples.FOLDER
    assert paths.project_record(project) == f"{samples.FOLDER}/project_{project}.json"
    assert paths.layer_record(project, layer) == samples.LAYER_NAME
    assert paths.model_record(project, model) == samples.MODEL_NAME
    assert paths.label_project_record(project, "x") == f"{samples.FOLDER}/labels_x.json"
    assert paths.labels_export(project, "x") == f"{samples.FOLDER}/artifacts/labels_x.geojson"
    assert paths.task_input(project, "trn-1", "a.yaml") == f"{samples.FOLDER}/trn-1/inputs/a.yaml"


@pytest.mark.parametrize("blobs", [AZURE, AZURITE])
@pytest.mark.parametrize("base", ["https://acct.blob.core.windows.net/data", "http://azurite:10000/acct/data"])
@pytest.mark.parametrize("query", ["", "?", f"?{SAS}"])
def test_own_container_in_both_host_styles(blobs: MemoryBlobs, base: str, query: str) -> None:
    assert paths.blob_name(f"{base}/{NAME}{query}", blobs) == NAME


@pytest.mark.parametrize(
    "url",
    [
        "",
        "x.tif",
        f"file:///acct/data/{NAME}",
        f"https://other.blob.core.windows.net/data/{NAME}",
        f"https://acct.blob.core.windows.net/other/{NAME}",
        f"https://acct.blob.core.windows.net/data2/{NAME}",
        "https://acct.blob.core.windows.net/data",
        "https://acct.blob.core.windows.net/data/",
        "https://acct.blob.core.windows.net/data/a/../b",
        "https://acct.blob.core.windows.net/data//b",
        "https://acct.blob.core.windows.net/data/a%20b",
        "https://acct.blob.core.windows.net/data/a b",
        "https://[::1/data/x",
        "https://s3.amazonaws.com/data/x.tif",
    ],
)
def test_every_other_url_names_no_blob_of_ours(url: str) -> None:
    assert paths.blob_name(url, AZURE) is None


@given(st.text())
def test_any_text_is_a_safe_name_or_none(text: str) -> None:
    for url in (text, f"https://acct.blob.core.windows.net/data/{text}"):
        name = paths.blob_name(url, AZURE)
        assert name is None or (paths.is_safe_name(name) and ".." not in name.split("/"))
