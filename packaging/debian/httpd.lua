-- SPDX-License-Identifier: MIT
-- The configuration of the service sxe-httpd. Every option is in sxe-httpd(1); to see whether the file is good:
--   sxe-httpd --config /etc/sxe/httpd.lua --check
-- After a change: systemctl reload sxe-httpd
return {
  ip = "127.0.0.1", -- "::" listens on all addresses
  port = 8000,
  workers = "auto", -- a process for each CPU
  root = "/usr/share/sxe-httpd/site", -- the example; serve your own folder instead, such as /srv/www
}
