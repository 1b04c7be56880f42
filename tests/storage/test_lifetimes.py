"""Lives of SAS and keys, by arithmetic."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from shared.errors import Refused
from shared.settings.lifetimes import BACKDATE, KEY_MAX_LIFE, MARGIN, covers, fits, key_window, sas_expiry, sas_start

NOW = datetime(2026, 11, 30, 12, 0, 0, tzinfo=UTC)
LONGEST = KEY_MAX_LIFE - 2 * MARGIN
SECOND = timedelta(seconds=1)

times = st.datetimes(datetime(2025, 1, 1), datetime(2030, 1, 1), timezones=st.just(UTC))
lives = st.timedeltas(timedelta(seconds=1), timedelta(days=9))


def test_a_sas_lasts_for_the_wait_the_run_and_the_margin() -> None:
    wait, run = timedelta(hours=12), timedelta(hours=30)
    assert sas_expiry(NOW, wait, run) == NOW + timedelta(hours=43)


@given(now=times, wait=lives, run=lives)
@example(now=NOW, wait=LONGEST - timedelta(hours=1), run=timedelta(hours=1))
@example(now=NOW + timedelta(microseconds=1), wait=LONGEST - timedelta(hours=1), run=timedelta(hours=1))
@example(now=NOW + timedelta(microseconds=999_999), wait=LONGEST - SECOND, run=SECOND)
@example(now=NOW, wait=LONGEST, run=SECOND)
def test_a_new_key_lasts_for_every_sas_that_is_not_refused(now: datetime, wait: timedelta, run: timedelta) -> None:
    if wait + run > LONGEST:
        assert not fits(wait, run)
        with pytest.raises(Refused, match=r"WORKER_MAX_WAIT .* WORKER_MAX_RUN_"):
            sas_expiry(now, wait, run)
        return
    expiry, key = sas_expiry(now, wait, run), key_window(now)
    assert fits(wait, run)
    assert expiry - now >= wait + run + MARGIN
    assert expiry <= key.expiry
    assert covers(key, now, expiry)


@given(now=times)
@example(now=NOW)
@example(now=NOW + timedelta(microseconds=999_999))
def test_a_key_is_one_that_azure_storage_gives(now: datetime) -> None:
    key = key_window(now)
    assert timedelta(minutes=5) <= now - key.start <= timedelta(minutes=15)
    assert key.expiry - key.start <= KEY_MAX_LIFE
    assert key.expiry - now < KEY_MAX_LIFE
    assert key.start.microsecond == key.expiry.microsecond == 0


@given(now=times, age=st.timedeltas(timedelta(), KEY_MAX_LIFE), wait=lives, run=lives)
def test_a_cached_key_is_used_exactly_while_it_covers(
    now: datetime, age: timedelta, wait: timedelta, run: timedelta
) -> None:
    if not fits(wait, run):
        return
    key, later = key_window(now), now + age
    expiry = sas_expiry(later, wait, run)
    assert covers(key, later, expiry) == (expiry <= key.expiry)


@given(now=times, age=st.timedeltas(timedelta(), timedelta(days=6)))
def test_a_sas_starts_in_the_past(now: datetime, age: timedelta) -> None:
    later = now + age
    assert later - BACKDATE - SECOND <= sas_start(later, key_window(now)) <= later - BACKDATE


def test_a_sas_does_not_start_before_its_key_although_the_clock_was_put_back() -> None:
    key, earlier = key_window(NOW), NOW - timedelta(minutes=5)
    assert covers(key, earlier, NOW)
    assert sas_start(earlier, key) == key.start


def test_a_key_from_the_future_is_not_used() -> None:
    key = key_window(NOW)
    assert not covers(key, NOW - timedelta(hours=1), NOW)
