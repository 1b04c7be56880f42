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

@secure()
@description('All app settings but those of the telemetry, as an object from name to text.')
param settings object

@description('Resource tags.')
param tags object = {}

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
    properties: union(settings, {
      APPLICATIONINSIGHTS_CONNECTION_STRING: insights.properties.ConnectionString
    })
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
