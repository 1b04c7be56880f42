// The container that a Flex Consumption app runs its package from, in an existing storage account.

@description('Name of the storage account, in the resource group of this deployment.')
param storageAccountName string

@description('Name of the container.')
param containerName string

resource account 'Microsoft.Storage/storageAccounts@2026-04-01' existing = {
  name: storageAccountName

  resource blobs 'blobServices' existing = {
    name: 'default'
  }
}

resource container 'Microsoft.Storage/storageAccounts/blobServices/containers@2026-04-01' = {
  parent: account::blobs
  name: containerName
}
