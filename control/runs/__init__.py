"""The record: log, projections, leases, inbox, host."""
