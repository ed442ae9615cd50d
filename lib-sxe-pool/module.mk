sxe-pool.needs := sxe-log
