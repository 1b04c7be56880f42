using '../main.bicep'

// Pools of this tenant's own, that the worker resizes by its identity; all inside a network.
param workerName = 'example-worker'
param storageAccountName = 'examplehaste'
param batchAccountName = 'examplebatch'
param poolIdentityId = '/subscriptions/00000000-0000-0000-0000-000000000001/resourceGroups/haste-rg/providers/Microsoft.ManagedIdentity/userAssignedIdentities/haste-batch'
param acrName = 'exampleregistry'
param titilerEndpoint = 'https://example.invalid/api/titiler/'
param functionSubnetId = '/subscriptions/00000000-0000-0000-0000-000000000001/resourceGroups/network-rg/providers/Microsoft.Network/virtualNetworks/tenant/subnets/functions'
param otherSettings = {
  AzureFunctionsJobHost__extensions__queues__batchSize: '2'
  AZURE_CLIENT_ID: '00000000-0000-0000-0000-00000000000b'
  REQUESTS_CA_BUNDLE: '/certificates/own.pem'
  SSL_CERT_FILE: '/certificates/own.pem'
}
param logAnalyticsWorkspaceId = '/subscriptions/00000000-0000-0000-0000-000000000001/resourceGroups/logs-rg/providers/Microsoft.OperationalInsights/workspaces/logs'
