"""The operator's page: what the gateway, its rollouts and the bulk jobs beside it do now."""
