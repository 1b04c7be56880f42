using '../platform.bicep'

param existingBatchAccountName = 'examplebatch'
param existingAcrName = 'exampleregistry'
param acrResourceGroup = 'registry-rg'
param logAnalyticsWorkspaceId = '/subscriptions/00000000-0000-0000-0000-000000000001/resourceGroups/logs-rg/providers/Microsoft.OperationalInsights/workspaces/logs'
param actionGroupIds = [
  '/subscriptions/00000000-0000-0000-0000-000000000001/resourceGroups/logs-rg/providers/Microsoft.Insights/actionGroups/on-call'
]
