using '../modules/batchPool.bicep'

// What shared-pools.bicep leaves at its default: slots, a floor, the fill type and the interval.
param batchAccountName = 'examplebatch'
param poolName = 'example-pool'
param tier = 'cpu'
param group = 'dev'
param vmSize = 'Standard_D16s_v5'
param minNodes = 1
param maxNodes = 3
param taskSlotsPerNode = 4
param nodeFillType = 'Spread'
param evaluationIntervalMinutes = 10
param acrName = 'exampleregistry'
param umiResourceId = '/subscriptions/00000000-0000-0000-0000-000000000001/resourceGroups/platform-rg/providers/Microsoft.ManagedIdentity/userAssignedIdentities/image-pull'
param trainingImage = 'hastetraining:2.0.0'
param imageryprepImage = 'hasteimageryprep:2.0.0'
