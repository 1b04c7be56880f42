// What all tenants share, for those who do not have it yet: Batch account, container registry, the identity that pulls
// the images, and optionally a subnet for the nodes. The pools come with shared-pools.bicep, into the same resource group.

@description('Azure region.')
param location string = resourceGroup().location

@description('First part of the names of what is made here.')
@minLength(2)
@maxLength(20)
param resourcePrefix string = 'haste'

@description('Name of a Batch account that exists in this resource group. Empty: one is made.')
param existingBatchAccountName string = ''

@description('Name of a container registry that exists. Empty: one is made.')
param existingAcrName string = ''

@description('Resource group of the existing container registry. Empty: this one.')
param acrResourceGroup string = ''

@description('Makes a virtual network with a subnet for the nodes of the shared pools, from which storage accounts that deny all else can be reached.')
param createBatchNetwork bool = false

@description('Addresses of that network: one for each node, and some that Azure keeps.')
param batchNetworkPrefix string = '10.42.0.0/24'

@description('Object id that the application Microsoft Azure Batch has in your directory, so that it may put nodes into the subnet: `az ad sp show --id ddbf3205-c6bd-46ae-8127-60eb93363864 --query id`.')
param batchServicePrincipalId string = ''

@description('Resource id of a Log Analytics workspace that keeps what the Batch account says of its pools; with it comes an alert on nodes that Azure does not give. Empty: neither.')
param logAnalyticsWorkspaceId string = ''

@description('Resource ids of the action groups that the alert tells.')
param actionGroupIds string[] = []

@description('Resource tags.')
param tags object = {}

// Batch accounts and registries have lower-case letters and digits in their names, 24 at most; 13 make it unique.
var lettersAndDigits = replace(replace(toLower(resourcePrefix), '-', ''), '_', '')
var madeName = '${take(lettersAndDigits, 11)}${uniqueString(resourceGroup().id)}'
var batchAccountName = empty(existingBatchAccountName) ? madeName : existingBatchAccountName
var acrName = empty(existingAcrName) ? madeName : existingAcrName
var joinPrincipalId = createBatchNetwork && empty(batchServicePrincipalId)
  ? fail('createBatchNetwork needs batchServicePrincipalId')
  : batchServicePrincipalId

resource batchAccount 'Microsoft.Batch/batchAccounts@2025-06-01' = if (empty(existingBatchAccountName)) {
  name: batchAccountName
  location: location
  tags: tags
  properties: {
    poolAllocationMode: 'BatchService'
    allowedAuthenticationModes: [
      'AAD'
    ]
  }
}

resource existingBatchAccount 'Microsoft.Batch/batchAccounts@2025-06-01' existing = if (!empty(existingBatchAccountName)) {
  name: existingBatchAccountName
}

resource registry 'Microsoft.ContainerRegistry/registries@2025-11-01' = if (empty(existingAcrName)) {
  name: acrName
  location: location
  tags: tags
  sku: {
    name: 'Standard'
  }
  properties: {
    adminUserEnabled: false
  }
}

resource pullIdentity 'Microsoft.ManagedIdentity/userAssignedIdentities@2024-11-30' = {
  name: '${resourcePrefix}-image-pull'
  location: location
  tags: tags
}

module pullRole 'modules/registryRole.bicep' = {
  name: 'image-pull-role'
  scope: resourceGroup(empty(existingAcrName) || empty(acrResourceGroup) ? resourceGroup().name : acrResourceGroup)
  params: {
    acrName: acrName
    principalId: pullIdentity.properties.principalId
  }
  dependsOn: [
    registry
  ]
}

module batchNetwork 'modules/network.bicep' = if (createBatchNetwork) {
  name: 'batch-network'
  params: {
    // Batch puts nodes only into networks of its own region.
    location: empty(existingBatchAccountName) ? location : existingBatchAccount!.location
    name: '${resourcePrefix}-batch-network'
    addressPrefix: batchNetworkPrefix
    subnetName: 'batch'
    joinPrincipalId: joinPrincipalId
    tags: tags
  }
}

module batchLogs 'modules/batchLogs.bicep' = if (!empty(logAnalyticsWorkspaceId)) {
  name: 'batch-logs'
  params: {
    location: location
    batchAccountName: batchAccountName
    logAnalyticsWorkspaceId: logAnalyticsWorkspaceId
    actionGroupIds: actionGroupIds
    tags: tags
  }
  dependsOn: [
    batchAccount
  ]
}

@description('Value of HASTE_EXISTING_BATCH_ACCOUNT.')
output batchAccountName string = batchAccountName

@description('Value of HASTE_SHARED_ACR_NAME.')
output acrName string = acrName

@description('Value of HASTE_SHARED_UMI_ID.')
output umiResourceId string = pullIdentity.id

@description('Value of HASTE_SHARED_BATCH_SUBNET_ID.')
output batchSubnetId string = createBatchNetwork ? batchNetwork!.outputs.subnetId : ''
