"""App settings, local.settings.json and connections are found by the real host's rules."""

import json
from pathlib import Path

import pytest

from local.functions_host.connections import ConnectionFault, find_connection
from local.functions_host.faults import HostFaults
from local.functions_host.settings import SettingError, Settings, read_local_settings

ACCOUNT = "DefaultEndpointsProtocol=https;AccountName=one;AccountKey=a2V5;EndpointSuffix=core.windows.net"


def write(folder: Path, document: object) -> Path:
    path = folder / "local.settings.json"
    path.write_text(json.dumps(document), encoding="utf-8")
    return path


def test_without_a_file_there_are_no_values(tmp_path: Path) -> None:
    assert read_local_settings(tmp_path / "local.settings.json") == {}


def test_values_are_strings_nulls_are_skipped_empty_ones_kept(tmp_path: Path) -> None:
    values = {"A": "text", "B": "", "C": None, "D": 5, "E": True}
    path = write(tmp_path, {"IsEncrypted": False, "Values": values, "Host": {"CORS": "*"}})
    assert read_local_settings(path) == {"A": "text", "B": "", "D": "5", "E": "true"}


@pytest.mark.parametrize(
    ("document", "named"),
    [
        ({"Values": {"A": "x"}}, "IsEncrypted"),
        ({"IsEncrypted": True, "Values": {}}, "IsEncrypted"),
        ({"IsEncrypted": False, "Values": {"POOLS": {"a": 1}}}, "Values.POOLS"),
        ({"IsEncrypted": False, "Values": {"POOLS": ["a"]}}, "Values.POOLS"),
        ({"IsEncrypted": False, "Values": {}, "Host": {"CORS": ["*"]}}, "Host.CORS"),
        ([], "JSON object"),
    ],
)
def test_unreadable_files_are_errors(document: object, named: str, tmp_path: Path) -> None:
    with pytest.raises(HostFaults, match=named):
        read_local_settings(write(tmp_path, document))


def test_names_in_percent_signs_are_resolved_anywhere_in_a_text() -> None:
    settings = Settings({"TENANT": "one", "a__b": "deep"})
    assert settings.resolve("jobs") == "jobs"
    assert settings.resolve("jobs-%TENANT%-%tenant%-%A:B%") == "jobs-one-one-deep"


@pytest.mark.parametrize("text", ["%UNKNOWN%", "%EMPTY%", "a-%TENANT"])
def test_unresolved_names_are_errors(text: str) -> None:
    with pytest.raises(SettingError, match=text.strip("a-%")):
        Settings({"EMPTY": "", "TENANT": "one"}).resolve(text)


@pytest.mark.parametrize(
    ("name", "value", "disabled"),
    [
        ("AzureWebJobs.tick.Disabled", "true", True),
        ("AzureWebJobs_tick_Disabled", "True", True),
        ("AzureWebJobs.tick.Disabled", "1", True),
        ("AzureWebJobs.tick.Disabled", "false", False),
        ("AzureWebJobs.tock.Disabled", "true", False),
    ],
)
def test_functions_are_disabled_by_name(name: str, value: str, disabled: bool) -> None:
    assert Settings({name: value}).is_disabled("tick") is disabled


def test_an_empty_connection_is_the_hosts_storage() -> None:
    assert find_connection(Settings({"AzureWebJobsStorage": ACCOUNT}), "").setting == "AzureWebJobsStorage"


def test_a_connection_is_found_with_the_prefix() -> None:
    found = find_connection(Settings({"AzureWebJobsJobs": ACCOUNT}), "Jobs")
    assert (found.setting, found.connection_string) == ("AzureWebJobsJobs", ACCOUNT)


def test_a_connection_string_wins_over_identity() -> None:
    settings = Settings({"Jobs": ACCOUNT, "Jobs__queueServiceUri": "https://two.example"})
    assert find_connection(settings, "Jobs").connection_string == ACCOUNT


def test_identity_by_account_name() -> None:
    found = find_connection(Settings({"Jobs__accountName": "two"}), "Jobs")
    assert found.queue_uri == "https://two.queue.core.windows.net"
    assert found.blob_uri == "https://two.blob.core.windows.net"


def test_identity_by_service_uri() -> None:
    settings = {
        "Jobs__queueServiceUri": "https://127.0.0.1:1/two",
        "Jobs__credential": "managedidentity",
        "Jobs__clientId": "c",
    }
    found = find_connection(Settings(settings), "Jobs")
    assert (found.queue_uri, found.managed_identity, found.client_id) == ("https://127.0.0.1:1/two", True, "c")
    found.check_queue()
    with pytest.raises(ConnectionFault, match="Jobs__blobServiceUri"):
        found.check_blob()


def test_a_missing_connection_names_the_settings_that_would_do() -> None:
    with pytest.raises(ConnectionFault, match="Jobs__queueServiceUri"):
        find_connection(Settings({}), "Jobs")


def test_a_broken_connection_string_is_refused_without_showing_it() -> None:
    connection = find_connection(Settings({"Jobs": "AccountKey;secret"}), "Jobs")
    with pytest.raises(ConnectionFault) as refusal:
        connection.check_queue()
    assert "secret" not in str(refusal.value) + repr(connection)
