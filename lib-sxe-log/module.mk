sxe-log.needs :=
