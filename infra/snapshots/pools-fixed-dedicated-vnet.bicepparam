using '../shared-pools.bicep'

param sharedGroup = 'dev'
param batchAccountName = 'examplebatch'
param acrName = 'exampleregistry'
param umiResourceId = '/subscriptions/00000000-0000-0000-0000-000000000001/resourceGroups/platform-rg/providers/Microsoft.ManagedIdentity/userAssignedIdentities/image-pull'
param h100ScaleMode = 'Fixed'
param sharedNodeType = 'Dedicated'
param h100FixedNodeCount = 3
param sharedBatchSubnetId = '/subscriptions/00000000-0000-0000-0000-000000000001/resourceGroups/network-rg/providers/Microsoft.Network/virtualNetworks/platform/subnets/batch'
