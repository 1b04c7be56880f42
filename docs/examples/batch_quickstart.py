"""Twenty tasks on an Azure Batch account: a pool, a job, the tasks, what they wrote, and everything removed again.

Only azure-batch is needed. Where the account is comes from the environment; the script is the same for all accounts:

    BATCH_ACCOUNT_ENDPOINT   https://<account>.<region>.batch.azure.com
    BATCH_ACCOUNT_NAME       the account's name
    BATCH_ACCOUNT_KEY        one of its keys
"""

# ruff: noqa: T201 - it is there to print
import os
import sys
import time
import uuid

from azure.batch import BatchClient, models
from azure.core.credentials import AzureNamedKeyCredential

TASKS = 20
LONGEST_WAIT_SECONDS = 30 * 60
PAUSE_SECONDS = 2


def main() -> int:
    credential = AzureNamedKeyCredential(os.environ["BATCH_ACCOUNT_NAME"], os.environ["BATCH_ACCOUNT_KEY"])
    name = f"quickstart-{uuid.uuid4().hex[:8]}"
    with BatchClient(os.environ["BATCH_ACCOUNT_ENDPOINT"], credential) as client:
        create_pool(client, name)
        try:
            create_job(client, name)
            try:
                wait_for_tasks(client, name)
                return show_outputs(client, name)
            finally:
                client.begin_delete_job(name)
        finally:
            client.begin_delete_pool(name)


def create_pool(client: BatchClient, name: str) -> None:
    """Two nodes, each for four tasks at once."""
    image = models.BatchVmImageReference(
        publisher="canonical", offer="ubuntu-24_04-lts", sku="server", version="latest"
    )
    client.create_pool(
        models.BatchPoolCreateOptions(
            id=name,
            vm_size="standard_d2s_v3",
            virtual_machine_configuration=models.VirtualMachineConfiguration(
                image_reference=image, node_agent_sku_id="batch.node.ubuntu 24.04"
            ),
            target_dedicated_nodes=2,
            task_slots_per_node=4,
        )
    )
    print(f"pool {name} is being made")


def create_job(client: BatchClient, name: str) -> None:
    """A job on the pool of the same name, with its tasks."""
    client.create_job(models.BatchJobCreateOptions(id=name, pool_info=models.BatchPoolInfo(pool_id=name)))
    tasks = [
        models.BatchTaskCreateOptions(
            id=f"task-{number:02}",
            command_line=f'/bin/bash -c "echo {number} squared is $(({number} * {number})), says $AZ_BATCH_TASK_ID"',
        )
        for number in range(TASKS)
    ]
    client.create_tasks(name, tasks)
    print(f"{TASKS} tasks are waiting")


def wait_for_tasks(client: BatchClient, job_id: str) -> None:
    """Raises TimeoutError. The first tasks start when the first node is ready, in the cloud after some minutes."""
    deadline = time.monotonic() + LONGEST_WAIT_SECONDS
    while True:
        states = [task.state for task in client.list_tasks(job_id, select=["id", "state"])]
        completed = states.count(models.BatchTaskState.COMPLETED)
        if completed == len(states) == TASKS:
            return
        if time.monotonic() > deadline:
            raise TimeoutError(f"only {completed} of {TASKS} tasks are completed")
        time.sleep(PAUSE_SECONDS)


def show_outputs(client: BatchClient, job_id: str) -> int:
    """Print what each task wrote; 1 if one of them failed."""
    failed = 0
    for task in client.list_tasks(job_id):
        output = b"".join(client.download_task_file(job_id, task.id, "stdout.txt")).decode()
        info = task.execution_info
        succeeded = info is not None and info.result == models.BatchTaskExecutionResult.SUCCESS
        failed += not succeeded
        node_id = task.node_info.node_id if task.node_info else None
        print(f"{task.id} on {node_id}: {output.strip() if succeeded else 'failed'}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
