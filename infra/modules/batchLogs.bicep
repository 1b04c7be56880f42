// What a Batch account says of its pools, kept in a workspace, and an alert on nodes that Azure does not give. The worker
// cannot see all of it: a task that waits in a pool's queue writes no line.

@description('Azure region.')
param location string

@description('Name of the Batch account, in the resource group of this deployment.')
param batchAccountName string

@description('Resource id of the Log Analytics workspace.')
param logAnalyticsWorkspaceId string

@description('Resource ids of the action groups that the alert tells.')
param actionGroupIds string[] = []

@description('Resource tags.')
param tags object = {}

resource account 'Microsoft.Batch/batchAccounts@2025-06-01' existing = {
  name: batchAccountName
}

#disable-next-line use-recent-api-versions // the other one is of 2016
resource logs 'Microsoft.Insights/diagnosticSettings@2021-05-01-preview' = {
  name: 'pools'
  scope: account
  properties: {
    workspaceId: logAnalyticsWorkspaceId
    logs: [
      {
        category: 'ServiceLog'
        enabled: true
      }
    ]
  }
}

resource alert 'Microsoft.Insights/scheduledQueryRules@2026-03-01' = {
  name: '${batchAccountName}-resize-failed'
  location: location
  tags: tags
  kind: 'LogAlert'
  properties: {
    displayName: '${batchAccountName}: resize-failed'
    description: 'A pool did not get the nodes that it asked for: a quota is used up, or Azure has none.'
    severity: 3
    enabled: true
    scopes: [
      logAnalyticsWorkspaceId
    ]
    evaluationFrequency: 'PT30M'
    windowSize: 'PT30M'
    // The columns come with the first event.
    skipQueryValidation: true
    criteria: {
      allOf: [
        {
          query: 'AzureDiagnostics | where OperationName == "PoolResizeCompleteEvent" and resultCode_s !in ("Success", "ResizeStopped") and _ResourceId endswith "/batchaccounts/${toLower(batchAccountName)}"'
          timeAggregation: 'Count'
          operator: 'GreaterThan'
          threshold: 0
        }
      ]
    }
    actions: {
      actionGroups: actionGroupIds
    }
  }
}
