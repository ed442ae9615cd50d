sxe-buffer.needs := sxe-log
