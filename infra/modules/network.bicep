// A virtual network with one subnet from which storage accounts can be reached by their network rules.

@description('Azure region.')
param location string

@description('Name of the virtual network.')
param name string

@description('Addresses of the virtual network; its one subnet has them all.')
param addressPrefix string

@description('Name of the subnet.')
param subnetName string

@description('Service that the subnet is delegated to, such as Microsoft.App/environments for a Flex Consumption app. Empty: none, as the nodes of Batch need it.')
param delegation string = ''

@description('Object id of the principal that may put machines into the subnet: that of Microsoft Azure Batch. Empty: none.')
param joinPrincipalId string = ''

@description('Resource tags.')
param tags object = {}

// There is no built-in role with the right to join alone.
var networkContributor = subscriptionResourceId(
  'Microsoft.Authorization/roleDefinitions',
  '4d97b98b-1d4f-4787-a291-c67834d212e7'
)

resource network 'Microsoft.Network/virtualNetworks@2026-03-01' = {
  name: name
  location: location
  tags: tags
  properties: {
    addressSpace: {
      addressPrefixes: [
        addressPrefix
      ]
    }
    subnets: [
      {
        name: subnetName
        properties: {
          addressPrefix: addressPrefix
          // Since API version 2025-07-01 a new subnet is private unless this is said; nodes fetch imagery from the Internet.
          defaultOutboundAccess: true
          serviceEndpoints: [
            { service: 'Microsoft.Storage' }
          ]
          delegations: empty(delegation)
            ? []
            : [
                {
                  name: 'delegation'
                  properties: {
                    serviceName: delegation
                  }
                }
              ]
        }
      }
    ]
  }

  resource subnet 'subnets' existing = {
    name: subnetName
  }
}

resource join 'Microsoft.Authorization/roleAssignments@2022-04-01' = if (!empty(joinPrincipalId)) {
  name: guid(network::subnet.id, joinPrincipalId, networkContributor)
  scope: network::subnet
  properties: {
    roleDefinitionId: networkContributor
    principalId: joinPrincipalId
    principalType: 'ServicePrincipal'
  }
}

@description('Resource id of the subnet.')
output subnetId string = network::subnet.id
