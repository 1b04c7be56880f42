// The GPU pools that the deployments of one group share: H100 and T4, in an existing Batch account.
// Deploy into the resource group of that account. New tenants need no change here.

@description('First part of the names of the pools.')
@minLength(1)
@maxLength(20)
param sharedPrefix string = 'haste'

@description('Group of deployments that these pools serve, such as dev or demo.')
@minLength(1)
@maxLength(20)
param sharedGroup string = 'dev'

@description('Name of the Batch account.')
@minLength(3)
@maxLength(24)
param batchAccountName string

@description('Resource id of the user-assigned identity that pulls the images; it has AcrPull and nothing else.')
@minLength(1)
param umiResourceId string

@description('Name of the container registry, without its domain.')
@minLength(5)
@maxLength(50)
param acrName string

@description('Container image of training and inference, repository:tag; the worker must be given the same.')
param trainingImage string = 'hastetraining:2.0.0'

@description('Container image of imagery preparation, repository:tag; the worker must be given the same.')
param imageryprepImage string = 'hasteimageryprep:2.0.0'

@description('LowPriority: Spot nodes, cheap, and Azure may take them away. Dedicated: nodes that stay, at full price.')
@allowed([
  'Dedicated'
  'LowPriority'
])
param sharedNodeType string = 'LowPriority'

@description('Autoscale: nodes as tasks need them. Fixed: h100FixedNodeCount nodes all the time, also when there is nothing to do.')
@allowed([
  'Autoscale'
  'Fixed'
])
param h100ScaleMode string = 'Autoscale'

@description('H100 nodes of a fixed pool.')
@minValue(0)
param h100FixedNodeCount int = 1

@description('Fewest H100 nodes with autoscale; 0: none while there is nothing to do.')
@minValue(0)
param h100MinNodes int = 0

@description('Most H100 nodes with autoscale; a node takes 40 cores of quota.')
@minValue(1)
param h100MaxNodes int = 2

@description('Fewest T4 nodes; 0: none while there is nothing to do.')
@minValue(0)
param t4MinNodes int = 0

@description('Most T4 nodes; a node takes 16 cores of quota.')
@minValue(1)
param t4MaxNodes int = 2

@description('Resource id of the subnet of both pools. Empty: none. Cannot be changed later: the pools must be deleted for that.')
param sharedBatchSubnetId string = ''

@description('Minutes between two evaluations of the autoscale formula.')
@minValue(5)
@maxValue(10080)
param evaluationIntervalMinutes int = 5

@description('Image of the nodes, publisher:offer:sku:version; `az batch pool supported-images list` shows what Batch supports.')
param nodeImage string = 'microsoft-dsvm:ubuntu-hpc:2404:latest'

@description('Batch node agent that belongs to nodeImage.')
param nodeAgentSkuId string = 'batch.node.ubuntu 24.04'

module h100Pool 'modules/batchPool.bicep' = {
  name: 'shared-${sharedGroup}-h100'
  params: {
    batchAccountName: batchAccountName
    poolName: '${sharedPrefix}-shared-${sharedGroup}-h100-pool'
    tier: 'h100'
    group: sharedGroup
    vmSize: 'Standard_NC40ads_H100_v5'
    scaleMode: h100ScaleMode
    nodeType: sharedNodeType
    fixedNodeCount: h100FixedNodeCount
    minNodes: h100MinNodes
    maxNodes: h100MaxNodes
    evaluationIntervalMinutes: evaluationIntervalMinutes
    umiResourceId: umiResourceId
    acrName: acrName
    trainingImage: trainingImage
    imageryprepImage: imageryprepImage
    nodeImage: nodeImage
    nodeAgentSkuId: nodeAgentSkuId
    subnetId: sharedBatchSubnetId
  }
}

module t4Pool 'modules/batchPool.bicep' = {
  name: 'shared-${sharedGroup}-t4'
  params: {
    batchAccountName: batchAccountName
    poolName: '${sharedPrefix}-shared-${sharedGroup}-t4-pool'
    tier: 't4'
    group: sharedGroup
    vmSize: 'Standard_NC16as_T4_v3'
    nodeType: sharedNodeType
    minNodes: t4MinNodes
    maxNodes: t4MaxNodes
    evaluationIntervalMinutes: evaluationIntervalMinutes
    umiResourceId: umiResourceId
    acrName: acrName
    trainingImage: trainingImage
    imageryprepImage: imageryprepImage
    nodeImage: nodeImage
    nodeAgentSkuId: nodeAgentSkuId
    subnetId: sharedBatchSubnetId
  }
}

@description('Id of the H100 pool, for the worker\'s pool settings.')
output h100PoolName string = h100Pool.outputs.poolName

@description('Id of the T4 pool, for the worker\'s pool settings.')
output t4PoolName string = t4Pool.outputs.poolName
