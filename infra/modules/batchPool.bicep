// One pool of an existing Batch account: fixed or autoscaled, dedicated or Spot nodes, with or without a subnet.
// Azure cannot change the subnet of a pool later, and its images and size only while it is empty: for those, delete the
// pool (its jobs stay) and deploy again.

@description('Name of the Batch account, in the resource group of this deployment.')
param batchAccountName string

@description('Id of the pool.')
@minLength(1)
@maxLength(64)
param poolName string

@description('Metadata of the pool: the tier of its nodes, such as h100 or t4.')
@minLength(1)
param tier string

@description('Metadata of the pool: the group of deployments that it serves.')
@minLength(1)
param group string

@description('VM size of the nodes.')
@minLength(1)
param vmSize string

@description('Autoscale: as many nodes as the tasks need, between minNodes and maxNodes. Fixed: always fixedNodeCount.')
@allowed([
  'Autoscale'
  'Fixed'
])
param scaleMode string = 'Autoscale'

@description('LowPriority: Spot nodes, cheap, and Azure may take them away. Dedicated: nodes that stay, at full price.')
@allowed([
  'Dedicated'
  'LowPriority'
])
param nodeType string = 'LowPriority'

@description('Nodes of a fixed pool.')
@minValue(0)
param fixedNodeCount int = 1

@description('Fewest nodes of an autoscaled pool. 0: none while there is nothing to do.')
@minValue(0)
param minNodes int = 0

@description('Most nodes of an autoscaled pool. Must fit into the core quota of the Batch account.')
@minValue(1)
param maxNodes int = 2

@description('Minutes between two evaluations of the autoscale formula; also how far back it looks at the tasks.')
@minValue(5)
@maxValue(10080)
param evaluationIntervalMinutes int = 5

@description('Minutes after which a fixed pool stops looking for nodes.')
@minValue(5)
@maxValue(10080)
param resizeTimeoutMinutes int = 15

@description('Tasks that a node runs at once. HASTE\'s tasks take the whole GPU: 1.')
@minValue(1)
@maxValue(256)
param taskSlotsPerNode int = 1

@description('With several slots per node: Pack fills one node after the other, Spread divides tasks over all nodes.')
@allowed([
  'Pack'
  'Spread'
])
param nodeFillType string = 'Pack'

@description('Resource id of the user-assigned identity that pulls the images. Every task on the node can use it: give it AcrPull and nothing else.')
@minLength(1)
param umiResourceId string

@description('Name of the container registry, without its domain.')
@minLength(5)
param acrName string

@description('Container image of training and inference, repository:tag.')
@minLength(1)
param trainingImage string

@description('Container image of imagery preparation, repository:tag.')
@minLength(1)
param imageryprepImage string

@description('Image of the nodes, publisher:offer:sku:version: one with Docker and the NVIDIA driver that Batch supports, and that is not about to be retired. `az batch pool supported-images list` shows them.')
param nodeImage string = 'microsoft-dsvm:ubuntu-hpc:2404:latest'

@description('Batch node agent that belongs to nodeImage.')
param nodeAgentSkuId string = 'batch.node.ubuntu 24.04'

@description('Disk of a node in GiB. Container images and the files of tasks are on it.')
@minValue(128)
@maxValue(4095)
param osDiskSizeGB int = 1023

@description('Resource id of the subnet of the nodes, in the region of the Batch account. Empty: none; the nodes then have addresses that no storage rule can name. Cannot be changed later.')
param subnetId string = ''

var registryServer = '${acrName}.azurecr.io'
var image = split(nodeImage, ':')
var isSpot = nodeType == 'LowPriority'
var isFixed = scaleMode == 'Fixed'
var most = minNodes <= maxNodes ? maxNodes : fail('minNodes (${minNodes}) is more than maxNodes (${maxNodes})')
var targets = isSpot
  ? { own: '$TargetLowPriorityNodes', other: '$TargetDedicatedNodes' }
  : { own: '$TargetDedicatedNodes', other: '$TargetLowPriorityNodes' }

// Why the formula is as it is:
// - It counts pending tasks, which are the queued and the running ones. Queued ones alone would send nodes away as soon
//   as their tasks start.
// - A sample is visible a minute or two after it was taken, and asking for samples that are not there is an error that
//   leaves the pool as it is. So it asks for percentages first; without any sample it keeps the present target.
// - The average over the window keeps nodes for one more look after their tasks have ended.
// - Tasks are divided by slots and rounded up: a little less than one node is added, then the rest is cut off.
// - A preempted node stays in the pool's count, so another is asked for in its place.
// - With taskcompletion no shrinking ever ends a running task.
var autoscaleFormula = join(
  [
    'minimum = ${minNodes};'
    'maximum = ${most};'
    'slots = ${taskSlotsPerNode};'
    'window = ${evaluationIntervalMinutes} * TimeInterval_Minute;'
    'seen = $PendingTasks.GetSamplePercent(window);'
    'newest = seen < 1 ? 0 : max(0, $PendingTasks.GetSample(1));'
    'tasks = seen < 60 ? newest : max(newest, avg($PendingTasks.GetSample(window)));'
    'busy = round((tasks + slots - 0.01) / slots - 0.5);'
    'lostSeen = $PreemptedNodeCount.GetSamplePercent(window);'
    'lost = (lostSeen < 1 || busy < 1) ? 0 : max(0, $PreemptedNodeCount.GetSample(1));'
    'wanted = seen < 1 ? ${targets.own} : busy + lost;'
    '${targets.own} = max(minimum, min(maximum, wanted));'
    '${targets.other} = 0;'
    '$NodeDeallocationOption = taskcompletion;'
  ],
  '\n'
)

resource batchAccount 'Microsoft.Batch/batchAccounts@2025-06-01' existing = {
  name: batchAccountName
}

resource pool 'Microsoft.Batch/batchAccounts/pools@2025-06-01' = {
  parent: batchAccount
  name: poolName
  identity: {
    type: 'UserAssigned'
    userAssignedIdentities: {
      '${umiResourceId}': {}
    }
  }
  properties: {
    vmSize: vmSize
    taskSlotsPerNode: taskSlotsPerNode
    taskSchedulingPolicy: {
      nodeFillType: nodeFillType
    }
    interNodeCommunication: 'Disabled'
    metadata: [
      { name: 'tier', value: tier }
      { name: 'group', value: group }
      { name: 'maximumNodes', value: string(isFixed ? fixedNodeCount : most) }
    ]
    deploymentConfiguration: {
      virtualMachineConfiguration: {
        imageReference: {
          publisher: image[0]
          offer: image[1]
          sku: image[2]
          version: image[3]
        }
        nodeAgentSkuId: nodeAgentSkuId
        osDisk: {
          caching: 'None'
          diskSizeGB: osDiskSizeGB
          managedDisk: {
            storageAccountType: 'Premium_LRS'
          }
        }
        containerConfiguration: {
          type: 'DockerCompatible'
          containerImageNames: [
            '${registryServer}/${trainingImage}'
            '${registryServer}/${imageryprepImage}'
          ]
          containerRegistries: [
            {
              registryServer: 'https://${registryServer}'
              identityReference: {
                resourceId: umiResourceId
              }
            }
          ]
        }
        nodePlacementConfiguration: {
          policy: 'Regional'
        }
      }
    }
    ...(empty(subnetId)
      ? {}
      : {
          networkConfiguration: {
            subnetId: subnetId
            publicIPAddressConfiguration: {
              provision: 'BatchManaged'
            }
          }
        })
    scaleSettings: isFixed
      ? {
          fixedScale: {
            targetDedicatedNodes: isSpot ? 0 : fixedNodeCount
            targetLowPriorityNodes: isSpot ? fixedNodeCount : 0
            resizeTimeout: 'PT${resizeTimeoutMinutes}M'
            nodeDeallocationOption: 'TaskCompletion'
          }
        }
      : {
          autoScale: {
            formula: autoscaleFormula
            evaluationInterval: 'PT${evaluationIntervalMinutes}M'
          }
        }
  }
}

@description('Id of the pool, for the worker\'s pool settings.')
output poolName string = pool.name
