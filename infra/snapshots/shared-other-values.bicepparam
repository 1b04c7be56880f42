using '../shared-pools.bicep'

// Every value is another than the default, and no two numbers are the same.
param sharedPrefix = 'acme'
param sharedGroup = 'north'
param batchAccountName = 'otherbatch'
param acrName = 'otherregistry'
param umiResourceId = '/subscriptions/00000000-0000-0000-0000-000000000001/resourceGroups/other-rg/providers/Microsoft.ManagedIdentity/userAssignedIdentities/other-pull'
param h100ScaleMode = 'Autoscale'
param sharedNodeType = 'Dedicated'
param h100MinNodes = 2
param h100MaxNodes = 5
param t4MinNodes = 3
param t4MaxNodes = 7
param evaluationIntervalMinutes = 10
param trainingImage = 'training:3.1'
param imageryprepImage = 'imagery:3.2'
param nodeImage = 'other-publisher:other-offer:2604:1.2.3'
param nodeAgentSkuId = 'batch.node.ubuntu 26.04'
param sharedBatchSubnetId = '/subscriptions/00000000-0000-0000-0000-000000000001/resourceGroups/other-rg/providers/Microsoft.Network/virtualNetworks/other/subnets/nodes'
