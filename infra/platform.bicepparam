// Values of platform.bicep from the environment. Nothing must be set; with HASTE_CREATE_BATCH_NETWORK=true
// HASTE_BATCH_SERVICE_PRINCIPAL_ID must be.
using './platform.bicep'

param resourcePrefix = readEnvironmentVariable('HASTE_RESOURCE_PREFIX', 'haste')
param existingBatchAccountName = readEnvironmentVariable('HASTE_EXISTING_BATCH_ACCOUNT', '')
param existingAcrName = readEnvironmentVariable('HASTE_SHARED_ACR_NAME', '')
param acrResourceGroup = readEnvironmentVariable('HASTE_SHARED_ACR_RESOURCE_GROUP', '')
param createBatchNetwork = bool(readEnvironmentVariable('HASTE_CREATE_BATCH_NETWORK', 'false'))
param batchServicePrincipalId = readEnvironmentVariable('HASTE_BATCH_SERVICE_PRINCIPAL_ID', '')
param logAnalyticsWorkspaceId = readEnvironmentVariable('HASTE_LOG_ANALYTICS_WORKSPACE_ID', '')
param actionGroupIds = json(readEnvironmentVariable('HASTE_ALERT_ACTION_GROUP_IDS', '[]'))
