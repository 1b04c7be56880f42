"""One local stack: storage, identity, Batch and functions hosts, as real programs on free ports of 127.0.0.1."""

from __future__ import annotations

import secrets
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any

from local.certificates import Certificates, create_certificates
from local.stack import reaper
from local.stack.azurite import ANY_PORTS, StorageAccount, start_azurite
from local.stack.environment import child_environment
from local.stack.services import Service, start_batch, start_host, start_identity
from local.stack.settings import BatchAccount, Identity, refuse_incomplete_connection_strings, tenant_settings
from local.stack.supervisor import StackError, Supervisor
from local.stack.world import complete_world, default_world

PREPARE_SECONDS = 30.0


@dataclass(frozen=True)
class StackOptions:
    """What to start.

    `run_folder`: logs, certificates, the nodes' files and the event log of this run.
    `app_folder`: the Functions app (the folder of its `host.json`); None starts no host.
    `tenants`: a storage account each, lower-case letters and digits, 3 to 24 of them; the Batch account is shared.
    `hosts_per_tenant`: as many instances as the app was scaled out to.
    `lease_seconds`: how long the hosts' queue triggers hide a message that they work on.
    `legacy`: settings of a single-pool deployment with the pool's identity, see `settings.batch_settings`.
    `settings`: app settings that are added for every tenant, or replace the usual ones.
    `adjust`: is given a tenant and its settings and returns those to use, for what is only known once all runs: a
        proxy between the worker and its services.
    `world`: what the Batch account looks like; None means `world.default_world()`.
    `data_folder`: where Azurite keeps its data; None means memory.
    `ports`: wanted ports of Azurite (blob, queue, table); free ones are taken where 0 or not free.
    `certificates`: use these; None makes new ones in the run folder.
    """

    run_folder: Path
    app_folder: Path | None = None
    tenants: tuple[str, ...] = ("tenanta",)
    hosts_per_tenant: int = 1
    lease_seconds: int = 30
    legacy: bool = False
    settings: Mapping[str, str] = field(default_factory=dict)
    adjust: Callable[[str, dict[str, str]], dict[str, str]] | None = None
    world: Mapping[str, Any] | None = None
    data_folder: Path | None = None
    ports: tuple[int, int, int] = ANY_PORTS
    certificates: Certificates | None = None


@dataclass
class Host:
    """One functions host. `url` and `service` change when it is restarted."""

    name: str
    tenant: str
    service: Service
    url: str = ""


class Stack:
    """`async with Stack(options) as stack:` starts everything and leaves nothing behind, however the block ends.

    The attributes hold values once `start` has returned.
    """

    accounts: dict[str, StorageAccount]
    certificates: Certificates
    identity: Identity
    batch: BatchAccount
    supervisor: Supervisor

    def __init__(self, options: StackOptions) -> None:
        refuse_incomplete_connection_strings(options.settings)
        self.options = options
        self.run_folder = options.run_folder.resolve()
        self.log_folder = self.run_folder / "logs"
        self.event_log = self.run_folder / "batch-events.jsonl"
        self.hosts: list[Host] = []

    async def __aenter__(self) -> Stack:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.stop()

    async def start(self) -> None:
        """Start all; raises StackError, with nothing left running, when a part does not come up."""
        self.supervisor = Supervisor(self.log_folder)
        try:
            await self._start_services()
            await self._prepare_storage()
            await self._start_hosts()
        except BaseException:  # a cancelled start, too, has to leave nothing behind
            await self.stop()
            raise

    async def stop(self) -> None:
        """Stop all. May be called again."""
        await self.supervisor.stop()

    @property
    def admin_url(self) -> str:
        """Where the emulator's own routes are: preemption, faults, time, reset."""
        return f"{self.batch.url}/admin"

    def settings(self, tenant: str) -> dict[str, str]:
        """The app settings of `tenant`."""
        usual = tenant_settings(tenant, self.accounts[tenant], self.batch, self.identity, legacy=self.options.legacy)
        settings = usual | dict(self.options.settings)
        return settings if self.options.adjust is None else self.options.adjust(tenant, settings)

    def environment(self, tenant: str) -> dict[str, str]:
        """The whole environment of a program that acts for `tenant`: this process's, trust, and the app settings."""
        return self.trusting_environment() | self.settings(tenant)

    def trusting_environment(self) -> dict[str, str]:
        """The environment of a program that may reach the stack's services, without anybody's settings."""
        return child_environment(self.certificates.environment())

    async def kill_host(self, index: int) -> None:
        """SIGKILL to a host and all it has started. It stays down until `restart_host`."""
        await self.supervisor.kill_child(self.hosts[index].service.child)

    async def restart_host(self, index: int) -> None:
        """Stop a host in order, if it runs, and start it anew, on another port."""
        host = self.hosts[index]
        if host.service.child in self.supervisor.children:
            await self.supervisor.stop_child(host.service.child)
        host.service = self._start_host(host.tenant, host.name)
        host.url = await host.service.ready()

    async def _start_services(self) -> None:
        self.certificates = self.options.certificates or create_certificates(self.run_folder / "certificates")
        secret = secrets.token_hex(16)
        identity = start_identity(self.supervisor, self.run_folder, child_environment(), secret)
        accounts = await start_azurite(
            self.supervisor,
            self.options.tenants,
            self.certificates,
            child_environment(),
            self.options.data_folder,
            self.options.ports,
        )
        self.accounts = dict(zip(self.options.tenants, accounts, strict=True))
        self.identity = Identity(await identity.ready(), secret)
        world = default_world() if self.options.world is None else self.options.world
        marks = {reaper.MARK_VARIABLE: self.supervisor.mark}
        world = complete_world(world, self.run_folder, self.certificates, self.identity, marks)
        service = start_batch(self.supervisor, self.run_folder, world, self.certificates, self.trusting_environment())
        account = world["account"]
        self.batch = BatchAccount(account["name"], account["key"], await service.ready())

    async def _prepare_storage(self) -> None:
        command = [sys.executable, "-m", "local.stack.prepare"]
        started = [
            self.supervisor.spawn(f"prepare-{tenant}", command, self.environment(tenant))
            for tenant in self.options.tenants
        ]
        for child in started:
            code = await child.wait(PREPARE_SECONDS)
            if code != 0:
                raise StackError(f"{child.name}: the storage is not usable. {child.tail() or child.log}")
            await self.supervisor.kill_child(child)

    async def _start_hosts(self) -> None:
        if self.options.app_folder is None:
            return
        for tenant in self.options.tenants:
            for number in range(self.options.hosts_per_tenant):
                name = f"host-{tenant}-{number}"
                self.hosts.append(Host(name, tenant, self._start_host(tenant, name)))
        for host in self.hosts:
            host.url = await host.service.ready()

    def _start_host(self, tenant: str, name: str) -> Service:
        assert self.options.app_folder is not None
        return start_host(
            self.supervisor,
            self.run_folder,
            name,
            self.options.app_folder,
            self.options.lease_seconds,
            self.environment(tenant),
        )


def describe(stack: Stack) -> dict[str, Any]:
    """What a person or a script needs to know of a running stack, as JSON values."""
    return {
        "run_folder": str(stack.run_folder),
        "logs": str(stack.log_folder),
        "event_log": str(stack.event_log),
        "batch_url": stack.batch.url,
        "admin_url": stack.admin_url,
        "identity_endpoint": stack.identity.endpoint,
        "hosts": [{"name": host.name, "tenant": host.tenant, "url": host.url} for host in stack.hosts],
        "settings": {tenant: stack.settings(tenant) for tenant in stack.options.tenants},
        "trust": stack.certificates.environment(),
    }
