using '../platform.bicep'

param existingBatchAccountName = 'examplebatch'
param existingAcrName = 'exampleregistry'
param acrResourceGroup = 'registry-rg'
