// The worker of one tenant: a function app beside that tenant's HASTE. It brings its identity, roles, settings and
// telemetry; storage account, Batch account, registry, pools and subnets are those that exist, unless asked otherwise.

@description('Azure region.')
param location string = resourceGroup().location

@description('Name of the function app.')
@minLength(2)
@maxLength(43)
param workerName string

@description('Resource tags.')
param tags object = {}

@description('Name of HASTE\'s storage account.')
@minLength(3)
@maxLength(24)
param storageAccountName string

@description('Resource group of HASTE\'s storage account. Empty: this one.')
param storageResourceGroup string = ''

@description('Makes the storage account, its container and its queues, in this resource group. Only for those who have no HASTE yet.')
param createStorageAccount bool = false

@description('HASTE\'s container.')
@minLength(3)
@maxLength(63)
param blobContainer string = 'data'

@description('URI of a secret in a key vault that holds the connection string of HASTE\'s storage account; the app\'s identity must be able to read it. Empty: it is made of the account\'s key, which the deployment reads itself.')
param storageCredentialUri string = ''

@description('Name of the Batch account.')
@minLength(3)
@maxLength(24)
param batchAccountName string

@description('Resource group of the Batch account. Empty: this one.')
param batchResourceGroup string = ''

@description('true: the worker uses the key of the Batch account, as HASTE\'s own app does. false: its identity gets the role that it needs.')
param useBatchKey bool = false

@description('URI of a secret in a key vault that holds that key. Empty: the deployment reads the key itself.')
param batchCredentialUri string = ''

@description('true: pools are shared with other tenants, and each task gets SAS of its own. false: the identity of the pool\'s nodes reaches the blobs.')
param useSas bool = false

@description('true: the worker may resize pools. false: it only submits.')
param managePools bool = true

@description('Pool of training, and of inference, if their lists are empty.')
@minLength(1)
@maxLength(64)
param trainingPoolId string = 'training-pool'

@description('Pool of imagery preparation, if its list is empty.')
@minLength(1)
@maxLength(64)
param imageryprepPoolId string = 'imageryprep-pool'

@description('Pools for training, best first, separated by commas.')
param trainingPoolIds string = ''

@description('Pools for inference, best first, separated by commas.')
param inferencePoolIds string = ''

@description('Pools for imagery preparation, best first, separated by commas.')
param imageryprepPoolIds string = ''

@description('Resource id of the identity of the pool\'s nodes, that tasks reach blobs with. Needed if useSas is false.')
param poolIdentityId string = ''

@description('Name of the container registry, without its domain.')
@minLength(5)
@maxLength(50)
param acrName string

@description('Container image of training and inference, repository:tag; the one that the pools have.')
param trainingImage string = 'hastetraining:2.0.0'

@description('Container image of imagery preparation, repository:tag; the one that the pools have.')
param imageryprepImage string = 'hasteimageryprep:2.0.0'

@description('Address of HASTE\'s tile server, as in HASTE\'s own settings.')
@minLength(1)
param titilerEndpoint string

@description('Address of the tile server for browsers. Empty: the same.')
param titilerPublicEndpoint string = ''

@description('Any other setting of docs/configuration.md by its name, such as { WORKER_MAX_WAIT: \'PT12H\' }; values are texts.')
param otherSettings { *: string } = {}

@description('Functions that stay off: imageryprep, training and inference while HASTE\'s own app takes the messages.')
param functionsOff ('imageryprep' | 'training' | 'inference' | 'jobs' | 'watch' | 'health')[] = []

@description('Resource id of a subnet delegated to Microsoft.App/environments, which storage lets in. Needed where storage denies by default. Empty: none, unless one is made.')
param functionSubnetId string = ''

@description('Makes a virtual network with such a subnet. An existing storage account must then be told to let it in.')
param createFunctionNetwork bool = false

@description('Addresses of that network.')
param functionNetworkPrefix string = '10.43.0.0/26'

@description('Resource id of the subnet of the shared pools, which a new storage account lets in.')
param sharedBatchSubnetId string = ''

@description('Resource id of a Log Analytics workspace. Empty: one is made.')
param logAnalyticsWorkspaceId string = ''

@description('Makes alerts on what the worker logs.')
param createAlerts bool = false

@description('Resource ids of the action groups that alerts tell.')
param actionGroupIds string[] = []

@description('Most instances of one function at once.')
@minValue(1)
@maxValue(1000)
param maximumInstanceCount int = 40

@description('Memory of an instance in MiB.')
@allowed([
  512
  2048
  4096
])
param instanceMemoryMB int = 2048

// Azure Functions documents the first two for a host that keeps its state in this account. The third is for the SAS of
// tasks: they are signed with a user delegation key. The last two are for Batch without its key.
var blobDataOwner = 'b7e6dc6d-f1e8-4753-8033-0f276bb0955b'
var queueDataContributor = '974c5e8b-45b9-4653-ba55-5f855dd0fb88'
var blobDelegator = 'db58b8e5-c6ad-4a2a-8342-4190687cbf4a'
var batchJobSubmitter = '48e5e92e-a480-4e71-aa9c-2778f4c13781'
var batchDataContributor = '6aaa78f1-f7de-44ca-8722-c64a23943cae'

// The settings without a parameter of their own. Empty means not set: the worker then takes its own default.
var optionalSettings = {
  BLOB_CONTAINER_READ_POLICY: ''
  IMAGE_QUEUE_NAME: ''
  TRAIN_QUEUE_NAME: ''
  INFERENCE_QUEUE_NAME: ''
  ZIP_QUEUE_NAME: ''
  TITILER_TILESIZE: ''
  GDAL_TRANSLATE_PARAMS: ''
  TRAINING_BATCH_JOB_ID: ''
  INFERENCE_BATCH_JOB_ID: ''
  IMAGERYPREP_BATCH_JOB_ID: ''
  AZURE_BATCH_TARGET_DEDICATED_NODES: ''
  AZURE_BATCH_TARGET_LOW_PRIORITY_NODES: ''
  AZURE_BATCH_TASK_RETENTION_TIME: ''
  WORKER_TENANT: ''
  WORKER_CONTAINER: ''
  WORKER_QUEUE_NAME: ''
  WATCH_SCHEDULE: ''
  WORKER_MAX_RUN_IMAGERYPREP: ''
  WORKER_MAX_RUN_TRAINING: ''
  WORKER_MAX_RUN_INFERENCE: ''
  WORKER_LATE_SAVE: ''
  WORKER_MAX_WAIT: ''
  WORKER_PREEMPTION_GRACE: ''
  WORKER_MAX_PREEMPTIONS: ''
  WORKER_POOL_COOL_DOWN: ''
  WORKER_QUEUED_TOO_LONG: ''
  WORKER_PROGRESS_EVERY: ''
  WORKER_TENANT_MAX_LIVE_TASKS: ''
}
// Read by the host, the identity library and the HTTP libraries. Values of host.json may be given as well.
var hostSettings = [
  'AZURE_CLIENT_ID'
  'REQUESTS_CA_BUNDLE'
  'SSL_CERT_FILE'
]
var possibleSettings = concat(objectKeys(optionalSettings), hostSettings)
var unknownSettings = filter(
  objectKeys(otherSettings),
  name => !contains(possibleSettings, name) && !startsWith(name, 'AzureFunctionsJobHost__')
)
var chosenSettings = empty(unknownSettings)
  ? union(optionalSettings, otherSettings)
  : fail('otherSettings: no such setting, or not one to set here: ${join(unknownSettings, ', ')}')

var storageGroup = createStorageAccount || empty(storageResourceGroup) ? resourceGroup().name : storageResourceGroup
var batchGroup = empty(batchResourceGroup) ? resourceGroup().name : batchResourceGroup
var storageSuffix = environment().suffixes.storage
var packageContainer = contains(workerName, '--')
  ? fail('workerName must not have two hyphens in a row: a container is named after it')
  : 'app-package-${toLower(workerName)}'
var blobUrl = 'https://${storageAccountName}.blob.${storageSuffix}'
var queueUrl = 'https://${storageAccountName}.queue.${storageSuffix}'
var queueNames = [
  empty(chosenSettings.IMAGE_QUEUE_NAME) ? 'image-layers-queue' : chosenSettings.IMAGE_QUEUE_NAME
  empty(chosenSettings.TRAIN_QUEUE_NAME) ? 'train-queue' : chosenSettings.TRAIN_QUEUE_NAME
  empty(chosenSettings.INFERENCE_QUEUE_NAME) ? 'inference-queue' : chosenSettings.INFERENCE_QUEUE_NAME
]
var registryIdentity = useSas || !empty(poolIdentityId)
  ? poolIdentityId
  : fail('poolIdentityId is needed if useSas is false')
var subnetId = createFunctionNetwork ? functionNetwork!.outputs.subnetId : functionSubnetId
var hasFunctionSubnet = createFunctionNetwork || !empty(functionSubnetId)
var hasBatchSubnet = !empty(sharedBatchSubnetId)
// A new account with a rule for one subnet denies all else: the app, or the nodes, could not reach it.
var batchSubnetIds = createStorageAccount && hasFunctionSubnet != hasBatchSubnet
  ? fail('createStorageAccount needs both subnets or none: createFunctionNetwork or functionSubnetId (HASTE_CREATE_FUNCTION_NETWORK, HASTE_FUNCTION_SUBNET_ID), and sharedBatchSubnetId (HASTE_SHARED_BATCH_SUBNET_ID)')
  : hasBatchSubnet ? [sharedBatchSubnetId] : []
var switchedOff = toObject(functionsOff, name => 'AzureWebJobs.${name}.Disabled', _ => 'true')

module functionNetwork 'modules/network.bicep' = if (createFunctionNetwork) {
  name: '${workerName}-network'
  params: {
    location: location
    name: '${workerName}-network'
    addressPrefix: functionNetworkPrefix
    subnetName: 'functions'
    delegation: 'Microsoft.App/environments'
    tags: tags
  }
}

module newStorage 'modules/storage.bicep' = if (createStorageAccount) {
  name: '${workerName}-storage'
  params: {
    location: location
    name: storageAccountName
    blobContainer: blobContainer
    queueNames: queueNames
    subnetIds: concat(empty(subnetId) ? [] : [subnetId], batchSubnetIds)
    tags: tags
  }
}

resource batchAccount 'Microsoft.Batch/batchAccounts@2025-06-01' existing = {
  name: batchAccountName
  scope: resourceGroup(batchGroup)
}

module package 'modules/packageContainer.bicep' = {
  name: '${workerName}-package'
  scope: resourceGroup(storageGroup)
  params: {
    storageAccountName: storageAccountName
    containerName: packageContainer
  }
  dependsOn: [
    newStorage
  ]
}

resource workspace 'Microsoft.OperationalInsights/workspaces@2026-03-01' = if (empty(logAnalyticsWorkspaceId)) {
  name: '${workerName}-logs'
  location: location
  tags: tags
  properties: {
    retentionInDays: 30
    sku: {
      name: 'PerGB2018'
    }
  }
}

module app 'modules/functionApp.bicep' = {
  name: '${workerName}-app'
  params: {
    location: location
    name: workerName
    packageContainerUrl: '${blobUrl}/${packageContainer}'
    subnetId: subnetId
    logAnalyticsWorkspaceId: empty(logAnalyticsWorkspaceId) ? workspace.id : logAnalyticsWorkspaceId
    maximumInstanceCount: maximumInstanceCount
    instanceMemoryMB: instanceMemoryMB
    tags: tags
    storageAccountName: storageAccountName
    storageResourceGroup: storageGroup
    storageCredentialUri: storageCredentialUri
    batchAccountName: batchAccountName
    batchResourceGroup: batchGroup
    useBatchKey: useBatchKey
    batchCredentialUri: batchCredentialUri
    settings: union(chosenSettings, switchedOff, {
      AzureWebJobsStorage__accountName: storageAccountName
      AzureWebJobsStorage__blobServiceUri: blobUrl
      AzureWebJobsStorage__queueServiceUri: queueUrl
      // Without it the host makes an id of the app's name, cut after 32 characters: two apps on one storage account
      // could then have the same, and only one of them its timer.
      AzureFunctionsWebHost__hostid: 'haste-worker-${uniqueString(subscription().id, resourceGroup().id, workerName)}'
      BLOB_CONTAINER: blobContainer
      METADATA_STORAGE_TYPE: 'blob'
      ARTIFACT_STORAGE_TYPE: 'blob'
      RUNNER_TYPE: 'azure_batch'
      TITILER_ENDPOINT: titilerEndpoint
      TITILER_PUBLIC_ENDPOINT: titilerPublicEndpoint
      AZURE_BATCH_ACCOUNT_NAME: batchAccountName
      AZURE_BATCH_URL: 'https://${batchAccount.properties.accountEndpoint}'
      AZURE_BATCH_OUTPUT_CONTAINER_URL: '${blobUrl}/${blobContainer}'
      AZURE_BATCH_TRAINING_POOL_ID: trainingPoolId
      AZURE_BATCH_IMAGERYPREP_POOL_ID: imageryprepPoolId
      AZURE_BATCH_TRAINING_POOL_IDS: trainingPoolIds
      AZURE_BATCH_INFERENCE_POOL_IDS: inferencePoolIds
      AZURE_BATCH_IMAGERYPREP_POOL_IDS: imageryprepPoolIds
      AZURE_BATCH_USE_SAS: toLower(string(useSas))
      AZURE_BATCH_MANAGE_POOLS: toLower(string(managePools))
      AZURE_BATCH_REGISTRY_IDENTITY_RESOURCE_ID: registryIdentity
      AZURE_BATCH_DOCKER_IMAGE: '${acrName}.azurecr.io/${trainingImage}'
      AZURE_BATCH_IMAGERYPREP_DOCKER_IMAGE: '${acrName}.azurecr.io/${imageryprepImage}'
    })
  }
  dependsOn: [
    package
  ]
}

module storageRoles 'modules/storageRoles.bicep' = {
  name: '${workerName}-storage-roles'
  scope: resourceGroup(storageGroup)
  params: {
    storageAccountName: storageAccountName
    principalId: app.outputs.principalId
    roleIds: concat([blobDataOwner, queueDataContributor], useSas ? [blobDelegator] : [])
  }
}

module batchRole 'modules/batchRole.bicep' = if (!useBatchKey) {
  name: '${workerName}-batch-role'
  scope: resourceGroup(batchGroup)
  params: {
    batchAccountName: batchAccountName
    principalId: app.outputs.principalId
    roleId: managePools ? batchDataContributor : batchJobSubmitter
  }
}

module alerts 'modules/alerts.bicep' = if (createAlerts) {
  name: '${workerName}-alerts'
  params: {
    location: location
    name: workerName
    insightsId: app.outputs.insightsId
    actionGroupIds: actionGroupIds
    tags: tags
  }
}

@description('Name to publish to: func azure functionapp publish.')
output workerName string = workerName

@description('Host name of the app; its health report is at /api/health.')
output hostName string = app.outputs.hostName

@description('Object id of the app\'s identity, for a key vault that secrets are read from.')
output principalId string = app.outputs.principalId

@description('Subnet that HASTE\'s storage account must let in, if it denies by default. Empty: none.')
output functionSubnetId string = subnetId
