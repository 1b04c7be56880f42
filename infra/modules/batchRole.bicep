// A role of one principal on an existing Batch account.

@description('Name of the Batch account, in the resource group of this deployment.')
param batchAccountName string

@description('Object id of the principal, a managed identity.')
param principalId string

@description('Id of the role definition, without its scope.')
param roleId string

resource account 'Microsoft.Batch/batchAccounts@2025-06-01' existing = {
  name: batchAccountName
}

resource role 'Microsoft.Authorization/roleAssignments@2022-04-01' = {
  name: guid(account.id, principalId, roleId)
  scope: account
  properties: {
    roleDefinitionId: subscriptionResourceId('Microsoft.Authorization/roleDefinitions', roleId)
    principalId: principalId
    principalType: 'ServicePrincipal'
  }
}
