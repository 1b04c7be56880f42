"""The long-lived read access in the URLs of HASTE's records: one container SAS, bound to a stored access policy.

The SAS names the policy and carries no times of its own; the policy on the container says until when it is good. So all
stored URLs live on as long as the policy is extended, and extending it needs no change to any record. A SAS that names
a stored policy can be signed with the account key only: Azure Storage does not allow it for user delegation.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

from azure.core.exceptions import AzureError
from azure.storage.blob import AccessPolicy, ContainerClient, PublicAccess, generate_container_sas

from shared.errors import Transient
from shared.settings.values import StorageAccount
from shared.storage.failures import StorageFailed, code_of, told

POLICY_LIFE = timedelta(days=90)
EXTEND_BELOW = timedelta(days=30)
LOOK_EVERY = timedelta(days=1)

#: Azure Storage allows five stored policies on a container.
_POLICIES_MAX = 5
_TRIES = 3


class ReadingUrls:
    """Makes the query of the URLs in HASTE's records, and keeps the policy behind it alive.

    The policy is looked at once per process and day, and written only when it is missing, does not allow reading or has
    less than 30 days left. Other policies of the container and its public access stay as they are.
    """

    def __init__(
        self, client: ContainerClient, account: StorageAccount, policy: str, clock: Callable[[], datetime]
    ) -> None:
        self._client = client
        self._account = account
        self._policy = policy
        self._clock = clock
        self._looked_at: datetime | None = None
        self._lock = threading.Lock()

    def token(self) -> str:
        """`sv=...&si=...&sr=c&sig=...`, the same for every blob of the container."""
        with self._lock:
            now = self._clock()
            if self._looked_at is None or now - self._looked_at >= LOOK_EVERY:
                self._keep_policy(now)
                self._looked_at = now
        return str(
            generate_container_sas(
                self._account.name,
                self._client.container_name,
                account_key=self._account.key,
                policy_id=self._policy,
            )
        )

    def _keep_policy(self, now: datetime) -> None:
        what = f"keep the access policy {self._policy} of the container {self._client.container_name}"
        with told(what):
            for _ in range(_TRIES):
                if self._extended_or_good(now):
                    return
        raise Transient(f"could not {what}: others keep changing the container's policies")

    def _extended_or_good(self, now: datetime) -> bool:
        """False if somebody else changed the container in between."""
        changed_at = self._client.get_container_properties().last_modified
        found = self._client.get_container_access_policy()
        policies: dict[str, AccessPolicy | None] = {
            str(one.id): one.access_policy for one in found["signed_identifiers"] or []
        }
        if _is_good(policies.get(self._policy), now):
            return True
        policies[self._policy] = AccessPolicy(permission="r", expiry=now + POLICY_LIFE)
        if len(policies) > _POLICIES_MAX:
            raise StorageFailed(
                f"the container {self._client.container_name} has {_POLICIES_MAX} access policies already and none is "
                f"{self._policy}; remove one, so that HASTE's URLs can be signed"
            )
        access = found["public_access"]
        try:
            self._client.set_container_access_policy(
                policies,  # type: ignore[arg-type]  # the SDK takes None for a policy that carries no fields
                public_access=None if access is None else PublicAccess(access),
                if_unmodified_since=changed_at,
            )
        except AzureError as error:
            if code_of(error) != "ConditionNotMet":
                raise
            return False
        return True


def _is_good(policy: AccessPolicy | None, now: datetime) -> bool:
    if policy is None or "r" not in str(policy.permission or ""):
        return False
    expiry = _time(policy.expiry)
    start = _time(policy.start)
    return expiry is not None and expiry - now >= EXTEND_BELOW and (start is None or start <= now)


def _time(value: datetime | str | None) -> datetime | None:
    """Azure Storage writes times with seven digits after the second, more than Python reads."""
    if not value:
        return None
    time = value if isinstance(value, datetime) else datetime.fromisoformat(f"{value[:19]}+00:00")
    return time if time.tzinfo else time.replace(tzinfo=UTC)
