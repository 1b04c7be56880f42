// A function app for Python 3.11 on a Flex Consumption plan of its own, with its identity, settings and telemetry.

@description('Azure region.')
param location string

@description('Name of the function app.')
param name string

@description('URL of the container that the app runs its package from.')
param packageContainerUrl string

@description('Resource id of the subnet that the app reaches everything through. Empty: none.')
param subnetId string

@description('Resource id of the Log Analytics workspace that takes the telemetry.')
param logAnalyticsWorkspaceId string

@description('Most instances of one function at once.')
param maximumInstanceCount int

@description('Memory of an instance in MiB.')
param instanceMemoryMB int

@description('Name of HASTE\'s storage account.')
param storageAccountName string

@description('Resource group of HASTE\'s storage account.')
param storageResourceGroup string

@description('URI of a secret in a key vault that holds its connection string. Empty: it is made of the account\'s key.')
param storageCredentialUri string

@description('Name of the Batch account.')
param batchAccountName string

@description('Resource group of the Batch account.')
param batchResourceGroup string

@description('Whether the app uses the key of the Batch account.')
param useBatchKey bool

@description('URI of a secret in a key vault that holds that key. Empty: the key itself is set.')
param batchCredentialUri string

@description('The app settings that are no secrets, as an object from name to text. Those that are stay inside of this module.')
param settings object

@description('Resource tags.')
param tags object = {}

resource storage 'Microsoft.Storage/storageAccounts@2026-04-01' existing = {
  name: storageAccountName
  scope: resourceGroup(storageResourceGroup)
}

resource batchAccount 'Microsoft.Batch/batchAccounts@2025-06-01' existing = {
  name: batchAccountName
  scope: resourceGroup(batchResourceGroup)
}

resource insights 'Microsoft.Insights/components@2020-02-02' = {
  name: '${name}-insights'
  location: location
  tags: tags
  kind: 'web'
  properties: {
    Application_Type: 'web'
    WorkspaceResourceId: logAnalyticsWorkspaceId
  }
}

resource plan 'Microsoft.Web/serverfarms@2025-03-01' = {
  name: '${name}-plan'
  location: location
  tags: tags
  kind: 'functionapp'
  sku: {
    tier: 'FlexConsumption'
    name: 'FC1'
  }
  properties: {
    reserved: true
  }
}

resource app 'Microsoft.Web/sites@2025-03-01' = {
  name: name
  location: location
  tags: tags
  kind: 'functionapp,linux'
  identity: {
    type: 'SystemAssigned'
  }
  properties: {
    serverFarmId: plan.id
    httpsOnly: true
    virtualNetworkSubnetId: empty(subnetId) ? null : subnetId
    siteConfig: {
      minTlsVersion: '1.2'
    }
    functionAppConfig: {
      deployment: {
        storage: {
          type: 'blobContainer'
          value: packageContainerUrl
          authentication: {
            type: 'SystemAssignedIdentity'
          }
        }
      }
      runtime: {
        name: 'python'
        version: '3.11'
      }
      scaleAndConcurrency: {
        maximumInstanceCount: maximumInstanceCount
        instanceMemoryMB: instanceMemoryMB
      }
    }
  }

  resource appSettings 'config' = {
    name: 'appsettings'
    properties: {
      ...settings
      BLOB_CONNECTION_STRING: empty(storageCredentialUri)
        ? 'DefaultEndpointsProtocol=https;AccountName=${storageAccountName};AccountKey=${storage.listKeys().keys[0].value};EndpointSuffix=${environment().suffixes.storage}'
        : '@Microsoft.KeyVault(SecretUri=${storageCredentialUri})'
      AZURE_BATCH_ACCOUNT_KEY: !useBatchKey
        ? ''
        : empty(batchCredentialUri)
            ? batchAccount.listKeys().primary
            : '@Microsoft.KeyVault(SecretUri=${batchCredentialUri})'
      APPLICATIONINSIGHTS_CONNECTION_STRING: insights.properties.ConnectionString
    }
  }

  // Publishing is by Entra identity: no passwords.
  resource scmPasswords 'basicPublishingCredentialsPolicies' = {
    name: 'scm'
    properties: {
      allow: false
    }
  }

  resource ftpPasswords 'basicPublishingCredentialsPolicies' = {
    name: 'ftp'
    properties: {
      allow: false
    }
  }
}

@description('Object id of the app\'s identity.')
output principalId string = app.identity.principalId

@description('Host name of the app.')
output hostName string = app.properties.defaultHostName

@description('Resource id of the app\'s telemetry.')
output insightsId string = insights.id
