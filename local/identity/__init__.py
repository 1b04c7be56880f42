"""A managed identity endpoint for the local stack, so that `DefaultAzureCredential` works as it does in Azure."""
