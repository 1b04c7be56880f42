// A storage account such as HASTE uses: its container and its queues. For those who have none yet.

@description('Azure region.')
param location string

@description('Name of the storage account.')
param name string

@description('Container of records, configs and results.')
param blobContainer string

@description('HASTE\'s queues.')
param queueNames string[]

@description('Resource ids of the subnets that may reach the account. With one at least, all else is denied.')
param subnetIds string[]

@description('Resource tags.')
param tags object = {}

resource account 'Microsoft.Storage/storageAccounts@2026-04-01' = {
  name: name
  location: location
  tags: tags
  kind: 'StorageV2'
  sku: {
    name: 'Standard_LRS'
  }
  properties: {
    minimumTlsVersion: 'TLS1_2'
    supportsHttpsTrafficOnly: true
    allowBlobPublicAccess: false
    // The long-lived URLs in HASTE's records can be signed with the account key only.
    allowSharedKeyAccess: true
    networkAcls: {
      defaultAction: empty(subnetIds) ? 'Allow' : 'Deny'
      bypass: 'AzureServices'
      #disable-next-line use-resource-id-functions // the ids are a parameter, which the rule does not see in a list
      virtualNetworkRules: map(subnetIds, subnetId => { id: subnetId, action: 'Allow' })
    }
  }

  resource blobs 'blobServices' = {
    name: 'default'

    resource container 'containers' = {
      name: blobContainer
    }
  }

  resource queues 'queueServices' = {
    name: 'default'

    resource queue 'queues' = [for queueName in queueNames: { name: queueName }]
  }
}
