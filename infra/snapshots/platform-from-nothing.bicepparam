using '../platform.bicep'

param createBatchNetwork = true
param batchServicePrincipalId = '00000000-0000-0000-0000-00000000000a'
