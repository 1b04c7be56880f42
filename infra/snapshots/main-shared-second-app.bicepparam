using '../main.bicep'

// One of several tenants on shared pools, beside an existing HASTE whose storage denies by default.
param workerName = 'a-tenant-with-a-rather-long-name-worker-2'
param storageAccountName = 'examplehaste'
param storageResourceGroup = 'haste-rg'
param batchAccountName = 'examplebatch'
param batchResourceGroup = 'platform-rg'
param useSas = true
param managePools = false
param trainingPoolIds = 'haste-shared-dev-h100-pool,haste-shared-dev-t4-pool'
param inferencePoolIds = 'haste-shared-dev-t4-pool,haste-shared-dev-h100-pool'
param imageryprepPoolIds = 'haste-shared-dev-t4-pool,haste-shared-dev-h100-pool'
param acrName = 'exampleregistry'
param titilerEndpoint = 'https://example.invalid/api/titiler/'
param functionSubnetId = '/subscriptions/00000000-0000-0000-0000-000000000001/resourceGroups/network-rg/providers/Microsoft.Network/virtualNetworks/tenant/subnets/functions'
param otherSettings = {
  WORKER_TENANT: 'example'
  WORKER_TENANT_MAX_LIVE_TASKS: '20'
}
