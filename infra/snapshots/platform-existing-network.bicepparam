using '../platform.bicep'

// A Batch account of another region than the resource group.
param existingBatchAccountName = 'examplebatch'
param existingAcrName = 'exampleregistry'
param createBatchNetwork = true
param batchServicePrincipalId = '00000000-0000-0000-0000-00000000000a'
