using '../platform.bicep'

param resourcePrefix = 'AI-lab_of_my-country'
param createBatchNetwork = true
param batchServicePrincipalId = '00000000-0000-0000-0000-00000000000a'
