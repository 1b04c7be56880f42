import re
from datetime import UTC, datetime, timedelta
from urllib.parse import parse_qs, urlsplit
from urllib.request import urlopen

import numpy as np
import pytest
from azure.core.exceptions import ClientAuthenticationError, HttpResponseError
from azure.storage.blob import BlobClient, ContainerClient
from rasterio.features import geometry_mask
from rasterio.io import MemoryFile
from rasterio.warp import transform_geom

from local.producer import HasteApi, names, synthetic
from tests.producer.conftest import Account

PROJECT_ID = "9f3c2b7e-41d0-4c55-8a6e-0b7d5e1f2a34"
PARTITION = "8d47eea41b2d6b8b6df8fd702531b8a1b7631a553d109c6e6168e0461d793eaa"


def test_partition_has_haste_s_check_value() -> None:
    assert names.partition(PROJECT_ID) == PARTITION


def test_uploaded_imagery_is_read_through_the_stored_policy(api: HasteApi) -> None:
    data = synthetic.imagery(after_event=True)
    url = api.upload_imagery(PROJECT_ID, "post01", data)
    path, query = urlsplit(url).path, parse_qs(urlsplit(url).query)
    assert path.endswith(f"/data/{PARTITION}/raw_imagery_{PROJECT_ID}_uploaded_post01.tif")
    assert re.search(r"\?sv=[\d-]+&si=image-layer-r-policy&sr=c&sig=[^&]+$", url)
    assert query.keys() == {"sv", "si", "sr", "sig"}
    with urlopen(url) as body:
        assert body.read() == data


def test_signed_urls_read_and_nothing_else(api: HasteApi) -> None:
    url = api.upload_imagery(PROJECT_ID, "post01", b"x")
    with BlobClient.from_blob_url(url) as blob:
        with pytest.raises((ClientAuthenticationError, HttpResponseError)):
            blob.upload_blob(b"y", overwrite=True)
        with pytest.raises((ClientAuthenticationError, HttpResponseError)):
            blob.delete_blob()


def test_policy_is_set_anew_for_90_days_and_replaces_others(api: HasteApi, account: Account) -> None:
    with ContainerClient.from_connection_string(account.connection_string, "data") as container:
        container.set_container_access_policy({})
        HasteApi.from_connection_string(account.connection_string)
        (policy,) = container.get_container_access_policy()["signed_identifiers"]
    assert (policy.id, policy.access_policy.permission) == ("image-layer-r-policy", "r")
    expiry = datetime.fromisoformat(str(policy.access_policy.expiry))
    assert abs(expiry - datetime.now(UTC) - timedelta(days=90)) < timedelta(hours=1)


def test_the_event_changes_the_damaged_houses_only() -> None:
    assert synthetic.imagery(after_event=True) == synthetic.imagery(after_event=True)
    with (
        MemoryFile(synthetic.imagery(after_event=False)) as before,
        MemoryFile(synthetic.imagery(after_event=True)) as after,
        before.open() as old,
        after.open() as new,
    ):
        assert (new.shape, new.count, new.dtypes[0], new.crs.to_epsg()) == ((512, 512), 3, "uint8", 32610)
        west, north = 689_100.0, 5_230_680.0
        assert tuple(new.bounds) == synthetic.bounds() == (west, north - 512, west + 512, north)
        changed = (np.abs(new.read().astype(int) - old.read()) > 40).any(axis=0)
    assert 0 < changed.sum() < changed.size / 20
    assert changed.sum() % (15 * 15) == 0


@pytest.mark.parametrize(
    ("name", "brightest"), [("Building", (190, 255)), ("Damaged Building", (100, 135)), ("Background", (75, 135))]
)
def test_labels_lie_on_what_they_name(name: str, brightest: tuple[int, int]) -> None:
    with MemoryFile(synthetic.imagery(after_event=True)) as file, file.open() as imagery:
        pixels = imagery.read().max(axis=0)
        drawn = [label for label in synthetic.labels() if label["properties"]["primaryClass"] == name]
        assert len(drawn) == 4
        for label in drawn:
            geometry = transform_geom("EPSG:4326", imagery.crs, label["geometry"])
            inside = geometry_mask([geometry], imagery.shape, imagery.transform, invert=True)
            assert inside.sum() == 15 * 15
            assert brightest[0] <= pixels[inside].min() <= pixels[inside].max() <= brightest[1]
