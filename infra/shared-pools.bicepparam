// Values of shared-pools.bicep from the environment. HASTE_EXISTING_BATCH_ACCOUNT, HASTE_SHARED_ACR_NAME and
// HASTE_SHARED_UMI_ID must be set; all else has a default. HASTE's own file takes Dedicated nodes by default, this one
// Spot (LowPriority): set HASTE_SHARED_NODE_TYPE to have those.
using './shared-pools.bicep'

param sharedPrefix = readEnvironmentVariable('HASTE_RESOURCE_PREFIX', 'haste')
param sharedGroup = readEnvironmentVariable('HASTE_SHARED_GROUP', 'dev')
param batchAccountName = readEnvironmentVariable('HASTE_EXISTING_BATCH_ACCOUNT')
param acrName = readEnvironmentVariable('HASTE_SHARED_ACR_NAME')
param umiResourceId = readEnvironmentVariable('HASTE_SHARED_UMI_ID')
param sharedBatchSubnetId = readEnvironmentVariable('HASTE_SHARED_BATCH_SUBNET_ID', '')

param sharedNodeType = readEnvironmentVariable('HASTE_SHARED_NODE_TYPE', 'LowPriority')
param h100ScaleMode = readEnvironmentVariable('HASTE_SHARED_H100_SCALE_MODE', 'Autoscale')
param h100MinNodes = int(readEnvironmentVariable('HASTE_SHARED_H100_MIN_NODES', '0'))
param h100MaxNodes = int(readEnvironmentVariable('HASTE_SHARED_H100_MAX_NODES', '2'))
param h100FixedNodeCount = int(readEnvironmentVariable('HASTE_SHARED_H100_FIXED_NODES', '1'))
param t4MinNodes = int(readEnvironmentVariable('HASTE_SHARED_T4_MIN_NODES', '0'))
param t4MaxNodes = int(readEnvironmentVariable('HASTE_SHARED_T4_MAX_NODES', '2'))

param trainingImage = readEnvironmentVariable('HASTE_TRAINING_IMAGE', 'hastetraining:2.0.0')
param imageryprepImage = readEnvironmentVariable('HASTE_IMAGERYPREP_IMAGE', 'hasteimageryprep:2.0.0')
param nodeImage = readEnvironmentVariable('HASTE_SHARED_NODE_IMAGE', 'microsoft-dsvm:ubuntu-hpc:2404:latest')
param nodeAgentSkuId = readEnvironmentVariable('HASTE_SHARED_NODE_AGENT', 'batch.node.ubuntu 24.04')
