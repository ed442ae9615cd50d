sxe.needs := sxe-buffer sxe-pool
