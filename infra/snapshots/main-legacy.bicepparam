using '../main.bicep'

// Beside an existing HASTE, as HASTE's own queue app: its pools, its Batch key, the identity of the nodes for the blobs.
param workerName = 'example-worker'
param storageAccountName = 'examplehaste'
param storageResourceGroup = 'haste-rg'
param batchAccountName = 'examplebatch'
param batchResourceGroup = 'haste-rg'
param useBatchKey = true
param batchCredentialUri = 'https://example-vault.invalid/secrets/batch-key'
param poolIdentityId = '/subscriptions/00000000-0000-0000-0000-000000000001/resourceGroups/haste-rg/providers/Microsoft.ManagedIdentity/userAssignedIdentities/haste-batch'
param acrName = 'exampleregistry'
param titilerEndpoint = 'https://example.invalid/api/titiler/'
param functionsOff = ['imageryprep', 'training', 'inference']
