"""Coordinators: which OAP nodes there are, by whatever registry a cluster has."""
