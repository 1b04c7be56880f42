using '../main.bicep'

// Shared pools, and all else of the tenant made here.
param workerName = 'example-worker'
param storageAccountName = 'examplehaste'
param createStorageAccount = true
param createFunctionNetwork = true
param createAlerts = true
param batchAccountName = 'examplebatch'
param batchResourceGroup = 'platform-rg'
param useSas = true
param managePools = false
param trainingPoolIds = 'haste-shared-dev-h100-pool,haste-shared-dev-t4-pool'
param imageryprepPoolIds = 'haste-shared-dev-t4-pool'
param acrName = 'exampleregistry'
param titilerEndpoint = 'https://example.invalid/api/titiler/'
param sharedBatchSubnetId = '/subscriptions/00000000-0000-0000-0000-000000000001/resourceGroups/platform-rg/providers/Microsoft.Network/virtualNetworks/haste-batch-network/subnets/batch'
param actionGroupIds = [
  '/subscriptions/00000000-0000-0000-0000-000000000001/resourceGroups/logs-rg/providers/Microsoft.Insights/actionGroups/on-call'
]
