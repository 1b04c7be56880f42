// Roles of one principal on an existing storage account.

@description('Name of the storage account, in the resource group of this deployment.')
param storageAccountName string

@description('Object id of the principal, a managed identity.')
param principalId string

@description('Ids of the role definitions, without their scope.')
param roleIds string[]

resource account 'Microsoft.Storage/storageAccounts@2026-04-01' existing = {
  name: storageAccountName
}

resource role 'Microsoft.Authorization/roleAssignments@2022-04-01' = [
  for roleId in roleIds: {
    name: guid(account.id, principalId, roleId)
    scope: account
    properties: {
      roleDefinitionId: subscriptionResourceId('Microsoft.Authorization/roleDefinitions', roleId)
      principalId: principalId
      principalType: 'ServicePrincipal'
    }
  }
]
