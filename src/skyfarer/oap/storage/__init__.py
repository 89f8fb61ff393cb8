"""Storage providers. Each implements the contract of oap.core.storage and imports no other one."""
