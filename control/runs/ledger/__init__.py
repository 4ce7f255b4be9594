"""What model calls are paid from, shared by all workers: accounts, reservations, and who settles those of the dead."""
