# SPDX-License-Identifier: MIT
#
# The only file with rules. Each lib-*/module.mk names what its library needs; everything is built below
# build/<mode>, mode being release (the default), coverage (gcov, ASan, UBSan, assertions) or debug (as coverage, but
# without counters, optimised a little, and for gdb).

MODE    ?= release
PREFIX  ?= /usr/local
DESTDIR ?=
BINDIR  ?= $(PREFIX)/bin
LIBDIR  ?= $(PREFIX)/lib
INCDIR  ?= $(PREFIX)/include/sxe
LUA_CDIR ?= $(LIBDIR)/lua/5.4
MANDIR  ?= $(PREFIX)/share/man
VERSION := $(shell sed -n 's/^.define SXE_VERSION  *"\(.*\)"/\1/p' lib-sxe-log/sxe-util.h)
SONAME  := libsxe.so.0
LUA_SONAME := libsxe-lua.so.0
B       := build/$(MODE)

ifneq ($(filter $(MODE),release debug coverage),$(MODE))
$(error MODE is "$(MODE)"; it must be release, debug or coverage)
endif
ifeq ($(V),)
Q := @
endif

PKG_CONFIG ?= pkg-config

# If the user gave no -j, the targets to type use every core.
parallel = $(if $(findstring jobserver,$(MAKEFLAGS)),,-j$(shell nproc))

# ---- What is built ----

LUA_CFLAGS := $(shell $(PKG_CONFIG) --cflags lua5.4 2>/dev/null || echo -I/usr/include/lua5.4)
LUA_LIBS   := $(shell $(PKG_CONFIG) --libs lua5.4 2>/dev/null || echo -llua5.4)

# OpenSSL 3, for lib-sxe-tls and the programs: without it that library is not built, and the programs have no TLS.
# Since make 4.3 a backslash before a # in a function stays there, so the # comes from a variable.
hash     := \#
comma    := ,
tls      := $(shell printf '%s\n' '$(hash)include <openssl/ssl.h>' '$(hash)if OPENSSL_VERSION_MAJOR < 3' '$(hash)error' '$(hash)endif' | \
                    $(CC) $(CPPFLAGS) -E -x c - >/dev/null 2>&1 && echo sxe-tls)
TLS_LIBS := $(if $(tls),$(or $(shell $(PKG_CONFIG) --libs libssl libcrypto 2>/dev/null),-lssl -lcrypto))

# The module sxe.crypto of scripts; it needs libcrypto alone.
crypto   := $(if $(tls),sxe-crypto)

# LMDB, for the module sxe.store of scripts: without it lib-sxe-store is not built, and scripts have none.
store      := $(shell echo '$(hash)include <lmdb.h>' | $(CC) $(CPPFLAGS) -E -x c - >/dev/null 2>&1 && echo sxe-store)
STORE_LIBS := $(if $(store),$(or $(shell $(PKG_CONFIG) --libs lmdb 2>/dev/null),-llmdb))

# Libpq 14, for the module sxe.postgres of scripts: without it lib-sxe-postgres is not built, and scripts have none.
POSTGRES_CFLAGS := $(shell $(PKG_CONFIG) --cflags libpq 2>/dev/null || echo -I/usr/include/postgresql)
# A header that pkg-config does not know may be that of another machine: then a program must link, too.
postgres.try  := $(shell $(PKG_CONFIG) --cflags libpq >/dev/null 2>&1 && echo -E -x c - || echo -x c - -o /dev/null -lpq)
postgres      := $(shell printf '%s\n' '$(hash)include <libpq-fe.h>' '$(hash)ifndef LIBPQ_HAS_PIPELINING' '$(hash)error' '$(hash)endif' 'int main(void) { return 0; }' | \
                         $(CC) $(CPPFLAGS) $(POSTGRES_CFLAGS) $(postgres.try) >/dev/null 2>&1 && echo sxe-postgres)
POSTGRES_LIBS := $(if $(postgres),$(or $(shell $(PKG_CONFIG) --libs libpq 2>/dev/null),-lpq))

# PCRE2, for the module sxe.regex of scripts: without it lib-sxe-regex is not built, and scripts have none.
REGEX_CFLAGS := $(shell $(PKG_CONFIG) --cflags libpcre2-8 2>/dev/null)
regex      := $(shell echo '$(hash)include <pcre2.h>' | $(CC) $(CPPFLAGS) $(REGEX_CFLAGS) -DPCRE2_CODE_UNIT_WIDTH=8 -E -x c - >/dev/null 2>&1 && echo sxe-regex)
REGEX_LIBS := $(if $(regex),$(or $(shell $(PKG_CONFIG) --libs libpcre2-8 2>/dev/null),-lpcre2-8))

# Libraries that scripts may have, each with a table of functions in apps/common/script-*.c.
scripts := $(crypto) $(store) $(postgres) $(regex) sxe-zlib

modules := $(filter-out $(if $(tls),,sxe-tls sxe-crypto) $(if $(store),,sxe-store) $(if $(postgres),,sxe-postgres) $(if $(regex),,sxe-regex),$(patsubst lib-%/module.mk,%,$(wildcard lib-*/module.mk)))
core    := sxe-http sxe-workers sxe sxe-dict sxe-sketch sxe-pool sxe-buffer sxe-log
apps    := httpd http lua pool
include $(wildcard lib-*/module.mk)

# $(call closure,sxe-pool): the library and everything below it, uppermost first.
closure  = $(call uniq,$1 $(foreach n,$($1.needs),$(call closure,$n)))
uniq     = $(if $1,$(call uniq,$(filter-out $(lastword $1),$1)) $(lastword $1))
includes = $(foreach m,$1,-Ilib-$m) -I$B/include

# $(call sources,lib-sxe): the sources in a folder and in its rooms (subfolders). apps/http/mpi is left out, because it is
# a program of its own. A file that needs OpenSSL, LMDB, libpq or PCRE2 has a substitute: one of the two is
# built.
no_tls  := $(if $(tls),-none)
no_store := $(if $(store),-none)
no_postgres := $(if $(postgres),-none)
no_regex := $(if $(regex),-none)
sources  = $(filter-out apps/http/mpi/% apps/httpd/tls/secure$(no_tls).c apps/http/load/handshake$(no_tls).c apps/common/script-tls$(no_tls).c apps/common/script-crypto$(no_tls).c apps/common/script-store$(no_store).c apps/common/script-postgres$(no_postgres).c apps/common/script-regex$(no_regex).c,$(wildcard $1/*.c $1/*/*.c))
rooms    = $(patsubst %/,-I%,$(wildcard $1/*/))
lib.rooms := $(foreach m,$(modules),$(call rooms,lib-$m))

# ---- How ----

CC     ?= gcc
AR     ?= ar
CFLAGS ?= -O2 -g
WARN   := -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wsign-conversion -Wundef -Wcast-qual -Wcast-align \
          -Wwrite-strings -Wpointer-arith -Wstrict-prototypes -Wmissing-prototypes -Wmissing-declarations \
          -Wredundant-decls -Wvla -Wformat=2 -Wnull-dereference -Wdouble-promotion
WERROR ?= $(if $(CI),-Werror)
supported = $(if $(shell $(CC) -Werror $1 -x c -c -o /dev/null /dev/null 2>/dev/null && echo yes),$1)
linked    = $(if $(shell echo 'int main(void) { return 0; }' | $(CC) -Werror $1 -x c -o /dev/null - 2>/dev/null && echo yes),$1)
harden := -fstack-protector-strong -fno-omit-frame-pointer $(call supported,-fstack-clash-protection) \
          $(call supported,-fcf-protection) $(call supported,-mbranch-protection=standard)

ifeq ($(MODE),release)
mode.cflags  := $(if $(findstring _FORTIFY_SOURCE,$(CFLAGS) $(CPPFLAGS)),,-D_FORTIFY_SOURCE=2) $(CFLAGS)
mode.ldflags := -Wl,-z,relro,-z,now
else
# UBSan's messages are 50,000 globals of a program, which ASan registers at each start: so in coverage UBSan only ends the
# program, and ASan prints where it was (handle_sigill=1). MODE=debug has the messages.
checked      := -DSXE_CHECKED=1 -fsanitize=address,undefined -fno-sanitize-recover=all \
                $(if $(filter coverage,$(MODE)),$(call supported,-fsanitize-undefined-trap-on-error))
# Counts of lines that threads share are exact only if they are atomic. -g1 names lines in reports, and links faster.
counted      := --coverage -fprofile-update=atomic -DSXE_COVERAGE=1
mode.cflags  := $(if $(filter debug,$(MODE)),-O1 -g,-O0 -g1 $(counted)) $(checked)
# Only tests run the programs of coverage. At fixed addresses they link in less time, for the descriptions of globals
# that ASan reads need 100,000 relocations.
mode.ldflags := $(if $(filter coverage,$(MODE)),--coverage) -fsanitize=address,undefined
endif

# Each flavour links 400 test programs. gold takes half of ld's time; it is used where the compiler finds it.
gold := $(shell echo 'int main(void) { return 0; }' | $(CC) -fuse-ld=gold -x c -o /dev/null - 2>/dev/null && echo -fuse-ld=gold)

ALL_CFLAGS  := -std=c11 -D_GNU_SOURCE -fPIC -fvisibility=hidden $(WARN) $(WERROR) $(harden) $(mode.cflags) $(CPPFLAGS)
ALL_LDFLAGS := $(if $(filter coverage,$(MODE)),-no-pie,-pie) -pthread $(mode.ldflags) $(LDFLAGS)
SHARED_LDFLAGS = -shared $(filter-out -pie -no-pie,$(ALL_LDFLAGS))
# glibc before 2.34 has timers in librt; in later ones that library is empty.
LIBEV       := -lev -lrt
# Functions of libraries are looked up once, when a test program starts, and not by each process of a case.
TEST_LDFLAGS = $(gold) $(ALL_LDFLAGS) $(if $(filter coverage,$(MODE)),-Wl$(comma)-z$(comma)now)
flags       := $(CC) $(ALL_CFLAGS) | $(ALL_LDFLAGS)

.DEFAULT_GOAL := all
.DELETE_ON_ERROR:
.PHONY: FORCE

FORCE:
$B/flags: FORCE
	@mkdir -p $(@D)
	@echo '$(flags)' | cmp -s - $@ || echo '$(flags)' > $@

# ---- Objects and libraries ----

$B/include/sxe-log-2010.h: lib-sxe-log/sxe-log-2010.sh
	@mkdir -p $(@D)
	$Qsh $< > $@

# The archive of lib-sxe alone is libsxe-core.a, because libsxe.a is the whole core.
archive = $B/lib$(if $(filter sxe,$1),sxe-core,$1).a

define module_rules
$1.obj := $(patsubst %.c,$B/obj/%.o,$(call sources,lib-$1))
$B/obj/lib-$1/%.o: lib-$1/%.c $B/flags | $B/include/sxe-log-2010.h
	@mkdir -p $$(@D)
	@$$(call say,CC,$$<)
	$$Q$$(CC) $$(ALL_CFLAGS) -DSXE_LOG_NO_2010 -DSXE_POOL_NO_2010 $(call includes,$(call closure,$1)) $(call rooms,lib-$1) $($1.cflags) -MMD -MP -c -o $$@ $$<
$(call archive,$1): $$($1.obj)
	@$$(call say,AR,$$@)
	@rm -f $$@
	$$Q$$(AR) rcsD $$@ $$^
endef
say = $(if $(Q),printf '  %-7s %s\n' $1 $2,:)
$(foreach m,$(modules),$(eval $(call module_rules,$m)))

core.obj := $(foreach m,$(core),$($m.obj))
$B/libsxe.a: $(core.obj)
	@$(call say,AR,$@)
	@rm -f $@
	$Q$(AR) rcsD $@ $^
$B/$(SONAME): $(core.obj) tools/libsxe.map
	@$(call say,LD,$@)
	$Q$(CC) $(SHARED_LDFLAGS) -Wl,-soname,$(SONAME) -Wl,-z,nodelete -Wl,--version-script=tools/libsxe.map -Wl,--no-undefined \
	    -o $@ $(core.obj) $(LIBEV) -lm

# lib-sxe-lua as a shared library, beside the core's. Internal functions that the archives of modules call are visible, too.
# Its thread-local variables have no tls_model: an interpreter opens it late, and has no room for them in advance. In
# programs the linker makes the same code of both. Release alone has it: assertions call hidden functions of the core.
$B/$(LUA_SONAME): $(sxe-lua.obj) $B/$(SONAME) tools/libsxe-lua.map
	@$(call say,LD,$@)
	$Q$(CC) $(SHARED_LDFLAGS) -Wl,-soname,$(LUA_SONAME) -Wl,-z,nodelete -Wl,--version-script=tools/libsxe-lua.map -Wl,--no-undefined \
	    -o $@ $(sxe-lua.obj) $B/$(SONAME) $(LUA_LIBS) -ledit $(LIBEV) -lm

# ---- Programs: apps/<name>/*.c and the folders in apps/<name> are build/<mode>/sxe-<name> ----

# The programs share apps/common. The load generator has scripts, reads JSON, and compresses.
app.includes = -Iapps/$1 $(call rooms,apps/$1)

http.libs  := $(if $(tls),$B/libsxe-tls.a $B/libsxe.a) $(LUA_LIBS) -ljansson -lz $(TLS_LIBS)
httpd.libs := $(scripts:%=$B/lib%.a) $B/libsxe-lua.a $(tls:%=$B/lib%.a) $B/libsxe.a $(LUA_LIBS) -lz $(TLS_LIBS) $(STORE_LIBS) $(POSTGRES_LIBS) $(REGEX_LIBS) -ledit -lcrypt
lua.libs   := $(scripts:%=$B/lib%.a) $B/libsxe-lua.a $(tls:%=$B/lib%.a) $B/libsxe.a $(LUA_LIBS) -lz $(TLS_LIBS) $(STORE_LIBS) $(POSTGRES_LIBS) $(REGEX_LIBS) -ledit
app_cflags = $(ALL_CFLAGS) -fPIE -Iapps/common $(call includes,$(core) sxe-lua $(tls) $(scripts)) $(LUA_CFLAGS)
define app_rules
$1.app.obj := $(patsubst %.c,$B/obj/%.o,$(call sources,apps/$1))
$B/obj/apps/$1/%.o: apps/$1/%.c $B/flags | $B/include/sxe-log-2010.h
	@mkdir -p $$(@D)
	@$$(call say,CC,$$<)
	$$Q$$(CC) $$(app_cflags) $(call app.includes,$1) -DSXE_LOG_NO_2010 -DSXE_POOL_NO_2010 -MMD -MP -c -o $$@ $$<
endef
$(foreach a,common $(apps),$(eval $(call app_rules,$a)))
# Pages and scripts are built in by .incbin, which the compiler's lists of dependencies do not name.
$B/obj/apps/http/report/output-html.o: apps/http/report/page.html apps/http/report/plot.js
$B/obj/apps/httpd/admin/status-page.o: apps/httpd/admin/status.html apps/httpd/admin/status.js
$B/obj/lib-sxe-lua/repl/sxe-lua-repl.o: lib-sxe-lua/repl/sxe-lua-repl.lua
$B/obj/lib-sxe-lua/io/sxe-lua-client.o: $(addprefix lib-sxe-lua/io/sxe-lua-,$(addsuffix .lua,client client-request client-connections client-response cookies multipart))
$B/obj/lib-sxe-lua/http/sxe-lua-session.o: lib-sxe-lua/http/sxe-lua-session.lua
$B/obj/lib-sxe-lua/http/sxe-lua-http-parts.o: lib-sxe-lua/http/sxe-lua-http-parts.lua
$B/obj/apps/lua/lua.o $B/obj/test/apps/lua/lua.o: apps/lua/project.lua apps/lua/rocks.lua
$B/obj/lib-sxe-lua/data/sxe-lua-template.o: lib-sxe-lua/data/sxe-lua-template.lua
$B/obj/lib-sxe-lua/io/sxe-lua-proxy.o: lib-sxe-lua/io/sxe-lua-proxy.lua
$B/obj/lib-sxe-crypto/sxe-crypto-jwt.o: lib-sxe-crypto/sxe-crypto-jwt.lua
$B/obj/lib-sxe-store/sxe-store.o: lib-sxe-store/sxe-store.lua
$B/obj/lib-sxe-postgres/sxe-postgres.o: lib-sxe-postgres/sxe-postgres.lua
$B/obj/lib-sxe-regex/sxe-regex.o: lib-sxe-regex/sxe-regex.lua
$B/obj/lib-sxe-zlib/sxe-zlib.o: lib-sxe-zlib/sxe-zlib.lua
$B/obj/lib-sxe-lua/io/sxe-lua-worker.o: lib-sxe-lua/io/sxe-lua-worker.lua
$B/obj/lib-sxe-lua/io/sxe-lua-redis.o: lib-sxe-lua/io/sxe-lua-redis.lua $(addprefix lib-sxe-lua/io/sxe-lua-redis,$(addsuffix .lua,-options -commands -handles -sentinel -route -cluster -shards -sharded))
# An archive, so that a program has only what it uses of them.
$B/apps-common.a: $(common.app.obj)
	@$(call say,AR,$@)
	@rm -f $@
	$Q$(AR) rcsD $@ $^
# Scripts start these programs thousands of times, so in coverage they have the faster ends of test programs.
ifeq ($(MODE),coverage)
program.end     := $B/obj/test/fake/program-counters.o $B/obj/test/fake/program-leaks.o
program.ldflags := -Wl,--wrap=__gcov_dump
endif
$B/obj/test/fake/program-%.o: test/fake/test-%.c $B/flags | $B/include/sxe-log-2010.h
	@mkdir -p $(@D)
	@$(call say,CC,$<)
	$Q$(CC) $(app_cflags) -DSXE_PROGRAM -MMD -MP -c -o $@ $<
define program_rule
$B/sxe-$1: $$($1.app.obj) $(program.end) $B/apps-common.a $B/libsxe.a
	@$$(call say,LD,$$@)
	$$Q$$(CC) $$(ALL_LDFLAGS) $(program.ldflags) -o $$@ $$($1.app.obj) $(program.end) $B/apps-common.a $B/libsxe.a $$($1.libs) $$(LIBEV) -lm
endef
$(foreach a,$(apps),$(eval $(call program_rule,$a)))

# The module `sxe` of a plain Lua interpreter, which has the symbols of Lua itself. That of LuaRocks looks for the shared
# libraries in its own folder.
module.archives = $B/apps-common.a $(scripts:%=$B/lib%.a) $(tls:%=$B/lib%.a)
$B/lua/beside/sxe.so: module.rpath = -Wl,-rpath,'$$ORIGIN'
$B/lua/sxe.so $B/lua/beside/sxe.so: $B/obj/apps/common/script-module.o $(module.archives) $B/$(LUA_SONAME)
	@mkdir -p $(@D)
	@$(call say,LD,$@)
	$Q$(CC) $(SHARED_LDFLAGS) -Wl,-z,nodelete $(module.rpath) -o $@ $< $(module.archives) $B/$(LUA_SONAME) $B/$(SONAME) \
	    -lz $(TLS_LIBS) $(STORE_LIBS) $(POSTGRES_LIBS) $(REGEX_LIBS) -Wl,--exclude-libs,ALL

$B/sxe-lua $B/sxe-httpd: $B/libsxe-lua.a $(scripts:%=$B/lib%.a)
$B/sxe-lua $B/sxe-httpd $B/sxe-http $B/sxe-http-mpi: $(tls:%=$B/lib%.a)

# sxe-http-mpi: sxe-http with a worker per core, on one machine or several. It is built if Open MPI is installed. libev is
# linked statically and hidden, because Open MPI brings libevent, which has functions of the same names.
mpi.cflags  := $(shell mpicc --showme:compile 2>/dev/null)
mpi.main    := apps/http/mpi/main-mpi.c
mpi.sources := $(filter-out $(mpi.main),$(wildcard apps/http/mpi/*.c))
mpi.objects  = $(patsubst %.c,$B/obj/%.o,$(mpi.main) $(mpi.sources) $(filter-out %/cli/http.c,$(call sources,apps/http)))
$B/obj/$(mpi.main:.c=.o): app_cflags += $(mpi.cflags)
$B/sxe-http-mpi: $(mpi.objects) $(program.end) $B/apps-common.a $B/libsxe.a
	@$(call say,LD,$@)
	$Q$(CC) $(ALL_LDFLAGS) $(program.ldflags) -o $@ $(mpi.objects) $(program.end) $B/apps-common.a $B/libsxe.a $(http.libs) -l:libev.a -Wl,--exclude-libs,libev.a \
	    $(shell mpicc --showme:link 2>/dev/null) -lm

# sxe-httpd as one file: without OpenSSL, which takes 4 MB of a program, and sxe-httpd-tls with it. Both are without libpq, whose
# archive lacks its own needs. They are linked of the same objects, with the substitutes of what they go without.
static.without   = $(patsubst %.c,$B/obj/%.o,$(patsubst %,apps/common/script-%-none.c,$1 postgres regex $(if $(store),,store)))
static.none     := $B/obj/apps/httpd/tls/secure-none.o $(call static.without,tls crypto)
static.none.tls := $(call static.without)
static.archives := $(filter %-store.a %-zlib.a,$(scripts:%=$B/lib%.a)) $B/libsxe-lua.a $B/libsxe.a
static.lua      := $(shell $(PKG_CONFIG) --static --libs lua5.4 2>/dev/null || echo $(LUA_LIBS))
# musl-gcc knows -static alone: make static STATIC=-static.
STATIC ?= -static-pie
# $(call static.link,OBJECTS AND ARCHIVES,LIBRARIES)
static.link = $(CC) $(filter-out -pie -no-pie,$(ALL_LDFLAGS)) $(STATIC) $(call linked,-Wl$(comma)-z$(comma)pack-relative-relocs) \
    -Wl,--gc-sections -s -o $@ $1 $(static.archives) $(static.lua) -lz $(STORE_LIBS) $2 -ledit -lbsd -lmd -ltinfo -lcrypt $(LIBEV) -lm \
    2>$@.said || { cat $@.said; false; }
$B/static/sxe-httpd: $(filter-out %/tls/secure.o,$(httpd.app.obj)) $(static.none) $B/apps-common.a $(static.archives)
	@mkdir -p $(@D)
	@$(call say,LD,$@)
	$Q$(call static.link,$(filter-out $(static.none) %.a,$^) $(static.none) $B/apps-common.a)
$B/static/sxe-httpd-tls: $(httpd.app.obj) $(static.none.tls) $B/apps-common.a $(patsubst %,$B/lib%.a,$(tls) $(crypto)) $(static.archives)
	@mkdir -p $(@D)
	@$(call say,LD,$@)
	$Q$(call static.link,$(filter-out $(static.none.tls) %.a,$^) $(static.none.tls) $B/apps-common.a $(patsubst %,$B/lib%.a,$(crypto) $(tls)),$(TLS_LIBS))

programs := $(apps:%=$B/sxe-%) $(if $(mpi.cflags),$B/sxe-http-mpi)

build: $(programs) $(foreach m,$(modules),$(call archive,$m)) $B/libsxe.a $B/$(SONAME) $(if $(filter release,$(MODE)),$B/$(LUA_SONAME) $B/lua/sxe.so)
	$(if $(tls),,@echo "lib-sxe-tls and lib-sxe-crypto are not built, for OpenSSL 3 is not installed (Debian: libssl-dev)")
	$(if $(store),,@echo "lib-sxe-store is not built, for LMDB is not installed (Debian: liblmdb-dev)")
	$(if $(postgres),,@echo "lib-sxe-postgres is not built, for libpq 14 is not installed (Debian: libpq-dev)")
	$(if $(regex),,@echo "lib-sxe-regex is not built, for PCRE2 is not installed (Debian: libpcre2-dev)")

# ---- Tests: test/unit/<library or program>/test-<stem>.c is one check program, linked with fakes of the system ----

CHECK_LIBS   = $(shell $(PKG_CONFIG) --libs check 2>/dev/null || echo -lcheck -lm -lrt -lpthread -lsubunit)
# test/unit takes half the time of a build. So it is not optimised, and its only sanitizer is ASan, which sees what a
# library does to a test's arrays. Libraries, programs and tests from outside are built as MODE says; so are the heavy
# unit tests, which use __OPTIMIZE__.
unit_cflags  = $(unit.$(MODE))
unit.src    := $(filter-out $(if $(store),,test/unit/lib-sxe-store/% %/test-lua-docs.c) $(if $(postgres),,test/unit/lib-sxe-postgres/% %/test-lua-docs.c) $(if $(regex),,test/unit/lib-sxe-regex/% %/test-lua-docs.c) $(if $(tls),,test/unit/lib-sxe-tls/% test/unit/lib-sxe-crypto/% %/test-httpd-tls.c %/test-httpd-upstreams-tls.c %/test-http-tls.c %/test-lua-tls.c %/test-lua-session.c %/test-lua-docs.c),$(wildcard test/unit/*/test-*.c test/unit/apps/*/test-*.c))
ifneq ($(wildcard test/unit/*.c test/unit/apps/*.c),)
$(error $(wildcard test/unit/*.c test/unit/apps/*.c): move it to the folder of its library or program, so that it is built)
endif
unit.heavy  := $(shell grep -l __OPTIMIZE__ $(unit.src))
$(unit.heavy:%.c=$B/obj/%.o): unit_cflags =
unit.release := -O0 -U_FORTIFY_SOURCE
unit.debug   := -O0 -g -fno-sanitize=undefined
unit.coverage := -fno-sanitize=undefined
test_cflags  = $(ALL_CFLAGS) -fPIE -Wno-null-dereference -Wno-conversion -Wno-sign-conversion \
               $(call includes,$(core) sxe-lua $(tls) $(scripts)) $(lib.rooms) $(LUA_CFLAGS) $(POSTGRES_CFLAGS) $(REGEX_CFLAGS) -Itest/fake -Itest/oracle -Itest/peer -Iapps/common $(foreach a,$(apps),$(call app.includes,$a)) \
               $(call rooms,test/unit) $(call rooms,test/unit/apps)
wraps       := $(addprefix -Wl$(comma)--wrap=,$(shell sed 's/\#.*//' test/fake/wrapped 2>/dev/null)) \
               $(if $(filter coverage,$(MODE)),-Wl$(comma)--wrap=__gcov_dump)

app.archives := $(patsubst %,$B/test/libapp-%.a,mpi $(apps) common)
unit.bin := $(patsubst %.c,$B/test/%,$(notdir $(unit.src)))
fake.obj := $(patsubst %.c,$B/obj/%.o,$(wildcard test/fake/*.c))
# An application's sources linked into a test: its main() becomes sxe_<name>_main(), so that file is compiled again.
app.main := $(shell grep -l '^main\>' apps/*/*.c apps/*/*/*.c)
define app_test_rules
$B/obj/test/apps/$1/%.o: apps/$1/%.c $B/flags | $B/include/sxe-log-2010.h
	@mkdir -p $$(@D)
	@$$(call say,CC,$$<)
	$$Q$$(CC) $$(app_cflags) $(call app.includes,$1) -DSXE_LOG_NO_2010 -DSXE_POOL_NO_2010 -Dmain=sxe_$1_main -Wno-missing-prototypes -Wno-missing-declarations -MMD -MP -c -o $$@ $$<
$B/test/libapp-$1.a: $$(patsubst %.c,$B/obj/%.o,$(filter-out $(app.main),$(call sources,apps/$1))) \
                     $$(patsubst %.c,$B/obj/test/%.o,$(filter $(app.main),$(call sources,apps/$1)))
	@mkdir -p $$(@D)
	@rm -f $$@ $$(filter-out $$(patsubst %.c,$B/obj/test/%.gcno,$(app.main)),$$(wildcard $B/obj/test/apps/$1/*.gcno $B/obj/test/apps/$1/*/*.gcno))
	$$Q$$(AR) rcsD $$@ $$^
endef
$(foreach a,$(apps) common,$(eval $(call app_test_rules,$a)))
# The sources of sxe-http-mpi that do not call MPI. One test includes main-mpi.c, with a fake MPI.
$B/test/libapp-mpi.a: $(patsubst %.c,$B/obj/%.o,$(mpi.sources))
	@mkdir -p $(@D)
	@rm -f $@
	$Q$(AR) rcsD $@ $^
# Not with -flto: its linker would drop the functions of test/fake, which --wrap refers to only afterwards.
$B/obj/test/%.o: test/%.c $B/flags | $B/include/sxe-log-2010.h
	@mkdir -p $(@D)
	@$(call say,CC,$<)
	$Q$(CC) $(test_cflags) -fno-lto -MMD -MP -c -o $@ $<
$B/obj/test/unit/%.o: test/unit/%.c $B/flags | $B/include/sxe-log-2010.h
	@mkdir -p $(@D)
	@$(call say,CC,$<)
	$Q$(CC) $(test_cflags) $(unit_cflags) -MMD -MP -c -o $@ $<
$B/obj/test/unit/apps/http/test-http-mpi-main.o: unit_cflags += -Itest/fake/mpi
$(foreach s,$(unit.src),$(eval $B/test/$(basename $(notdir $s)): $B/obj/$(s:.c=.o)))
$(unit.bin): $(fake.obj) $(app.archives) $(tls:%=$B/lib%.a) $B/libsxe.a test/fake/wrapped
	@mkdir -p $(@D)
	@$(call say,LD,$@)
	$Q$(CC) $(TEST_LDFLAGS) $(wraps) -o $@ $(filter %/$(@F).o,$^) $(peers) $(fake.obj) $(app.archives) $(script.archives) $(lua.archive) $(tls.archive) $B/libsxe.a $(http.libs) $(lua.editor) $(tls.libs) $(store.libs) $(postgres.libs) $(regex.libs) -l:libev.a $(CHECK_LIBS) -lm
lua.tests := $(filter $B/test/test-lua-% $B/test/test-httpd-% $B/test/test-crypto-% $B/test/test-store-% $B/test/test-postgres-% $B/test/test-regex-% $B/test/test-zlib-%,$(unit.bin))
$(lua.tests): script.archives = $(scripts:%=$B/lib%.a)
$(lua.tests): $(scripts:%=$B/lib%.a)
# LMDB's archive, so that its calls of the system and its allocations are wrapped, too.
$(lua.tests): store.libs = $(if $(store),-l:liblmdb.a)
$(lua.tests): postgres.libs = $(POSTGRES_LIBS)
$(lua.tests): regex.libs = $(REGEX_LIBS)
# What postgres-world.h makes fail.
$(filter $B/test/test-postgres-%,$(unit.bin)): postgres.libs += $(addprefix -Wl$(comma)--wrap=,$(shell sed -n 's/.*X.\(PQ[A-Za-z]*\),.*/\1/p' test/unit/lib-sxe-postgres/postgres-world.h 2>/dev/null))
# What store-world.h makes fail, a call after the other.
$(filter $B/test/test-store-%,$(unit.bin)): store.libs += $(addprefix -Wl$(comma)--wrap=,$(shell sed -n 's/.*X.\(mdb_[a-z0-9_]*\),.*/\1/p' test/unit/lib-sxe-store/store-world.h 2>/dev/null))
$(lua.tests): lua.archive = $B/libsxe-lua.a
$(lua.tests): lua.editor = -ledit -lcrypt
$(lua.tests): $B/libsxe-lua.a
$B/test/wire: $(wildcard test/wire/*.c) test/wire/wire.h $B/flags
	@mkdir -p $(@D)
	@$(call say,LD,$@)
	$Q$(CC) -std=c11 -D_GNU_SOURCE -O1 -g $(WARN) $(WERROR) $(LUA_CFLAGS) -o $@ $(filter %.c,$^) $(LUA_LIBS)

# A server whose replies follow a known law, so that the figures of a load generator can be checked.
$B/test/known-server: test/peer/known-server.c test/peer/known-law.h $B/flags
	@mkdir -p $(@D)
	@$(call say,LD,$@)
	$Q$(CC) -std=c11 -D_GNU_SOURCE -O2 -g $(WARN) $(WERROR) -Wno-conversion -Wno-sign-conversion -o $@ $< -lm

# A module that makes the calls which --confine refuses, in the server under test.
$B/test/refused-calls.so: test/peer/refused-calls.c $B/flags
	@mkdir -p $(@D)
	@$(call say,LD,$@)
	$Q$(CC) -std=c11 -D_GNU_SOURCE -O2 -g $(WARN) $(WERROR) -fPIC -shared -o $@ $<

# The model checker includes the pool's sources, with other accesses to memory; the soak test links the library.
$B/test/model: test/model/model.c $(wildcard test/model/*.h lib-sxe-pool/*.[ch]) $B/libsxe.a $B/flags
	@$(call say,LD,$@)
	@mkdir -p $(@D)
	$Q$(CC) $(test_cflags) $(ALL_LDFLAGS) -o $@ $< $B/libsxe.a $(LIBEV) -lm
$B/test/soak: test/soak/soak.c $(wildcard test/soak/*.h) $B/libsxe.a $B/flags
	@$(call say,LD,$@)
	@mkdir -p $(@D)
	$Q$(CC) $(test_cflags) $(ALL_LDFLAGS) -o $@ $< $B/libsxe.a $(LIBEV) -lm

# ---- Other parsers of HTTP, to compare ours with: Debian's, where they are installed ----

http_parser := $(wildcard /usr/include/http_parser.h)
# Debian 13 has only some of its sources, without llhttp.c.
llhttp      := $(if $(wildcard /usr/share/llhttp/llhttp.c),$(wildcard /usr/share/llhttp/*.c))
peers.src   := $(if $(http_parser),test/oracle/peer-http-parser.c) $(if $(llhttp),test/oracle/peer-llhttp.c $(llhttp))
peers.user  := $B/test/test-http-oracle $B/test/replay-http-oracle $B/bench/micro-http-parse build/fuzz/fuzz-http-oracle
$B/http-peers.o: $(peers.src) test/oracle/http-peers.h $B/flags
	@$(call say,CC,$@)
	$Q$(CC) -std=gnu11 -O3 -w -fPIE -I/usr/share/include/llhttp -r -nostdlib -o $@ \
	    $(or $(strip $(peers.src)),-x c /dev/null) $(if $(http_parser),-l:libhttp_parser.a)
$(peers.user): peers = $B/http-peers.o
$(peers.user): $B/http-peers.o

# ---- Tests from outside: public headers only, the libraries as they are installed, no fakes ----

outside.src := $(filter-out $(if $(tls),,test/outside/tls-%),$(wildcard test/outside/*.c))
outside.bin := $(outside.src:test/outside/%.c=$B/test/outside-%)
$(outside.bin): $B/test/outside-%: test/outside/%.c test/outside/outside.h $B/libsxe-lua.a $B/libsxe.a $B/flags
	@$(call say,CC,$<)
	@mkdir -p $(@D)
	$Q$(CC) $(test_cflags) -MMD -MP $(TEST_LDFLAGS) -o $@ $< $(tls.archive) $B/libsxe-lua.a $B/libsxe.a $(LUA_LIBS) $(LIBEV) $(tls.libs) $(CHECK_LIBS) -lm

tls.tests := $(filter $B/test/test-tls-% $B/test/test-lua-% $B/test/test-httpd-% $B/test/test-crypto-% $B/test/test-store-% $B/test/test-postgres-% $B/test/test-regex-% $B/test/test-zlib-%,$(unit.bin)) $(filter $B/test/outside-tls-%,$(outside.bin))
$(tls.tests): tls.archive = $(tls:%=$B/lib%.a)
$(tls.tests): tls.libs = $(TLS_LIBS)
$(tls.tests): $(tls:%=$B/lib%.a)

# ---- Examples, benchmarks, fuzzers: one source, one program ----

examples.bin := $(patsubst examples/%.c,$B/examples/%,$(wildcard examples/*.c))
# Programs whose libraries are not installed are left out.
bench.absent := $(if $(tls),,bench/limit-tls-%) $(if $(wildcard /usr/include/hiredis/hiredis.h),,bench/redis-get.c) \
                $(if $(wildcard /usr/include/lmdb.h),,bench/store-lmdb.c)
bench.bin    := $(patsubst bench/%.c,$B/bench/%,$(filter-out $(bench.absent),$(wildcard bench/*.c)))
fuzz.src     := $(filter-out $(if $(regex),,test/fuzz/fuzz-lua-regex.c),$(wildcard test/fuzz/fuzz-*.c))
fuzz.bin     := $(patsubst test/fuzz/fuzz-%.c,build/fuzz/fuzz-%,$(fuzz.src))
one_source = $(call say,CC,$<); mkdir -p $(@D); \
             $(CC) $(ALL_CFLAGS) -fPIE $(call includes,$(core) sxe-lua) $(one.cflags) -MMD -MP $(ALL_LDFLAGS) -o $@ $< $(peers) $(lua.archive) $B/libsxe.a $(one.libs) $(LIBEV) -lm
$B/examples/%: examples/%.c $B/libsxe.a $B/flags
	@$(one_source)
$B/bench/%: bench/%.c $B/libsxe.a $B/flags
	@$(one_source)
lmdb := $(wildcard /usr/include/lmdb.h)
$B/bench/micro-dict: one.cflags = $(if $(lmdb),-DMICRO_DICT_LMDB)
$B/bench/micro-dict: one.libs = $(if $(lmdb),-llmdb)
$B/bench/limit-tls-server $B/bench/limit-tls-client: one.libs = $(TLS_LIBS)
$B/bench/redis-get: one.libs = -lhiredis
$B/bench/store-lmdb: one.libs = -llmdb
lua.bench := $B/bench/lua-twins $B/bench/micro-lua
$(lua.bench): lua.archive = $B/libsxe-lua.a
$(lua.bench): one.cflags = $(LUA_CFLAGS)
$(lua.bench): one.libs = $(LUA_LIBS)
$(lua.bench): $B/libsxe-lua.a
# Fuzzers see all sources at once, instrumented by clang's libFuzzer.
build/fuzz/fuzz-%: test/fuzz/fuzz-%.c $(wildcard test/fuzz/*.h test/oracle/*.h) $(foreach m,$(core),$(wildcard lib-$m/*.[ch] lib-$m/*/*.[ch])) $B/include/sxe-log-2010.h
	@$(call say,FUZZ,$@)
	@mkdir -p $(@D)
	$Qclang-14 -std=c11 -D_GNU_SOURCE -g -O1 -fsanitize=fuzzer,address,undefined -fno-sanitize-recover=all \
	    $(call includes,$(core) sxe-lua $(tls) $(scripts)) $(lib.rooms) -Iapps/common \
	    $(foreach a,$(apps),$(call app.includes,$a)) -Itest/fuzz -Itest/oracle -o $@ $< $(peers) $(foreach m,$(core),$(call sources,lib-$m)) \
	    $(LUA_CFLAGS) $(filter-out %/http.c %/profile.c apps/common/script-%,$(call sources,apps/common) $(call sources,apps/http)) $(foreach m,$(tls),$(call sources,lib-$m)) $(if $(lua.fuzzed),$(foreach m,$(crypto),$(call sources,lib-$m))) $(lua.fuzzed) $(filter -l%,$(http.libs)) -lev -lm
build/fuzz/fuzz-lua-pattern build/fuzz/fuzz-lua-resp: lua.fuzzed = $(call sources,lib-sxe-lua) -ledit
build/fuzz/fuzz-lua-regex: lua.fuzzed = $(call sources,lib-sxe-lua) $(call sources,lib-sxe-regex) -ledit $(REGEX_LIBS)
# The fuzzers as programs that only replay the kept inputs, without clang: part of every flavour's tests.
$B/test/replay-%: test/fuzz/fuzz-%.c test/fuzz/replay.c $(wildcard test/fuzz/*.h test/oracle/*.h) $(app.archives) $(tls:%=$B/lib%.a) $B/libsxe.a $B/flags
	@$(call say,CC,$<)
	@mkdir -p $(@D)
	$Q$(CC) $(test_cflags) -Itest/fuzz $(TEST_LDFLAGS) -o $@ $< test/fuzz/replay.c $(peers) $(app.archives) $(script.archives) $(lua.archive) $B/libsxe.a $(http.libs) $(regex.libs) $(LIBEV) -lm
$B/test/replay-lua-pattern $B/test/replay-lua-resp $B/test/replay-lua-regex: lua.archive = $B/libsxe-lua.a
$B/test/replay-lua-pattern $B/test/replay-lua-resp $B/test/replay-lua-regex: $B/libsxe-lua.a
$B/test/replay-lua-regex: script.archives = $B/libsxe-regex.a
$B/test/replay-lua-regex: regex.libs = $(REGEX_LIBS)
$B/test/replay-lua-regex: $(if $(regex),$B/libsxe-regex.a)
replay.bin := $(patsubst test/fuzz/fuzz-%.c,$B/test/replay-%,$(fuzz.src))

# ---- What to type ----

.PHONY: all build core module deps mpi release debug coverage run test check test-mode bench bench-smoke bench-profile bench-deps bench-build instructions examples lint man compile_commands site format fuzz model soak truth conformance promises static platforms install install-core install-module uninstall dist deb deb-test print-flags clean help

all: ## build the libraries and programs in MODE (the default)
	@tools/deps.sh check build
	@$(MAKE) --no-print-directory $(parallel) MODE=$(MODE) build
	@echo "built: $B/sxe-httpd, $B/sxe-http, $B/libsxe.a and .so; next: make run, make test"

mpi: ## build sxe-http-mpi, the load generator for several machines; it needs Open MPI
	@tools/deps.sh check build mpi
	@$(MAKE) --no-print-directory $(parallel) MODE=$(MODE) $B/sxe-http-mpi
	@echo "built: $B/sxe-http-mpi; next: mpirun -np 4 $B/sxe-http-mpi URL"

deps: ## install what the build and the tests need, and nothing else (PEERS=all: the large peers, too)
	@tools/deps.sh install $(test.deps) && echo "all is installed; next: make, make test"

release: ## build the libraries and programs with MODE=release
	@$(MAKE) --no-print-directory MODE=release all

core: $B/libsxe.a $B/$(SONAME) $B/include/sxe-log-2010.h ## build only the C library; it needs libev, not Lua
	@:

module: $B/lua/beside/sxe.so ## build only the module sxe of a plain Lua host, and its libraries
	@:

run: ## install what is missing, build MODE, and start the server on 127.0.0.1:8000
	@tools/deps.sh install build
	@$(MAKE) --no-print-directory $(parallel) MODE=$(MODE) build
	@tools/run.sh $B

# PEERS=all installs the large peers as well.
test.deps = build test $(if $(filter all,$(PEERS)),peers)
test: ## install what is missing, then test release, and coverage with sanitizers (T=log: only those; PEERS=all: beside Chromium too)
	@tools/deps.sh install $(test.deps)
	@tools/test.sh

check: ## test the release flavour alone, in three minutes; nothing large is installed or run
	@tools/deps.sh install build check
	@tools/test.sh check

debug: ## build and test with sanitizers, optimised and without counters, as for gdb; make test does not need it
	@tools/deps.sh install $(test.deps)
	@$(MAKE) --no-print-directory $(parallel) MODE=debug test-mode

coverage: ## build and test with sanitizers and counters; fails below 100 % of the lines
	@tools/deps.sh install $(test.deps)
	@$(MAKE) --no-print-directory $(parallel) MODE=coverage test-mode
	@tools/coverage.sh

# One flavour: everything built, then every test of it.
test-mode: build test-bin
	@tools/run-tests.sh $(MODE)
# SXE_UNIT, which tools/test.sh sets: of test/unit, release needs only these programs.
unit.wanted := $(filter $(if $(filter release,$(MODE)),$(or $(SXE_UNIT:%=$B/test/%),%),%),$(unit.bin))
test-bin: $(programs) $(unit.wanted) $(outside.bin) $(replay.bin) $(examples.bin) $(if $(filter release,$(MODE)),$(bench.bin)) $B/test/wire $B/test/known-server $B/test/refused-calls.so

# More options for a run: BENCH="--seconds 2 --json bench/results/2030-01-01.json --markdown docs/benchmarks.md".
bench = build/release/test/wire bench/bench.lua $(ROW) $(BENCH)
bench: bench-build ## measure beside the limit programs and others' (ROW="S1 files": only those)
	@$(bench)
bench-smoke: bench-build ## see in seconds that all of that works; it shows no speed
	@$(bench) --smoke
bench-profile: bench-build ## a flame graph and the system calls of ROW=...
	@$(if $(ROW),$(bench) --profile,echo "type:  make bench-profile ROW=name; these there are:"; $(bench) --list)
bench-deps: ## install the servers and load generators to compare with
	@tools/bench-deps.sh install
bench-build:
	@tools/deps.sh install $(test.deps)
	@$(MAKE) --no-print-directory $(parallel) MODE=release build bench-bin
instructions: ## count the instructions of ours again: bench/instructions.tsv, which lint compares with
	@tools/deps.sh install build test lint
	@tools/instructions.sh write
bench-bin: $(bench.bin) $B/test/wire

examples: ## build the examples
	@tools/deps.sh check build
	@$(MAKE) --no-print-directory $(parallel) MODE=$(MODE) build examples-bin
	@echo "built: $(examples.bin)"
examples-bin: $(examples.bin)

lint: ## check style, headers, exported symbols, warnings
	@tools/deps.sh install build test lint
	@$(MAKE) --no-print-directory $(parallel) MODE=release build
	@tools/lint.sh

promises: ## run the tests from outside, and write docs/promises.md
	@tools/deps.sh install build test
	@$(MAKE) --no-print-directory $(parallel) MODE=release build $(outside.bin) build/release/test/wire build/release/test/refused-calls.so
	@tools/promises.sh write

man: release ## write docs/*.1 of docs/*.1.in and the programs' options, and packaging/completions
	@for page in docs/*.1.in; do tools/man.sh $$(basename $$page .1.in) > $${page%.in} || exit 1; done
	@tools/completions.sh packaging/completions

# make says which commands it would run; nothing is built.
compile_commands: ## write build/compile_commands.json, by which clangd understands the sources
	@mkdir -p build
	@SXE_UNIT= $(MAKE) --no-print-directory -nB V=1 MODE=$(MODE) build test-bin bench-bin $B/test/model $B/test/soak | \
	    awk -v dir="$$PWD" -f tools/compile-commands.awk > build/compile_commands.json
	@echo "written: build/compile_commands.json, where clangd looks for it"

site: ## write the documentation and the reference as pages for a browser, in build/site
	@tools/deps.sh install build site
	@$(MAKE) --no-print-directory $(parallel) MODE=release build/release/sxe-lua
	@build/release/sxe-lua tools/site/site.lua build/site

format: ## rewrite the sources in the house style
	@tools/deps.sh install lint
	@clang-format-14 -i $$(git ls-files '*.c' '*.h' ':!test/2010')

FUZZ_SECONDS ?= 60
fuzz: ## fuzz each parser, and scripts, for FUZZ_SECONDS (60); findings go to test/fuzz/corpus
	@tools/deps.sh install build fuzz
	@$(MAKE) --no-print-directory $(parallel) MODE=release fuzz-bin
	@$(MAKE) --no-print-directory $(parallel) MODE=debug build/debug/sxe-lua
	@tools/fuzz.sh $(FUZZ_SECONDS)
fuzz-bin: $(fuzz.bin)

model: ## run every schedule of larger cases of shared pools, with every death: minutes
	@tools/deps.sh check build
	@$(MAKE) --no-print-directory $(parallel) MODE=release build/release/test/model
	@build/release/test/model

truth: ## hold sxe-http's figures against servers of known behaviour: a minute
	@tools/deps.sh check build
	@$(MAKE) --no-print-directory $(parallel) MODE=release build build/release/test/wire build/release/test/known-server
	@SXE_BUILD=build/release build/release/test/wire test/peer/truth.lua

# PART="scan acme": only those parts of mpi scan hostile acme probes netns.
conformance: ## test beside large programs of others: MPI, scanners and hostile peers of TLS, certbot, bpftrace, HAProxy in a network that fails (PART=acme: only that): minutes
	@tools/deps.sh install build check
	@$(MAKE) --no-print-directory $(parallel) MODE=release build build/release/test/wire
	@tools/conformance.sh $(PART)

SOAK_SECONDS  ?= 3600
SOAK_COMMANDS ?= 1000000
# PART=server: only that part of pool server redis proxy. Of these, pool and server take SOAK_SECONDS each.
soak_part = $(filter $1,$(or $(PART),$1))
soak: ## kill users of a shared pool, then reload, upgrade, kill and attack servers under load, SOAK_SECONDS (3600) each; then SOAK_COMMANDS (1000000) to Redis, and as many to a cluster, which suffer; then 100,000 GETs through a proxy whose upstream closes connections (PART=server: only that)
	@tools/deps.sh install build check soak
	@$(MAKE) --no-print-directory $(parallel) MODE=release build build/release/test/soak build/release/test/wire
	@$(if $(call soak_part,pool),build/release/test/soak $(SOAK_SECONDS))
	@$(if $(call soak_part,server),SXE_BUILD=build/release build/release/test/wire test/soak/server.lua $(SOAK_SECONDS))
	@$(if $(call soak_part,redis),SXE_BUILD=build/release build/release/test/wire test/soak/redis.lua $(SOAK_COMMANDS))
	@$(if $(call soak_part,proxy),SXE_BUILD=build/release build/release/test/wire test/soak/proxy.lua)

installed   := $(apps) $(if $(mpi.cflags),http-mpi)
completions := bash-completion/completions zsh/site-functions fish/vendor_completions.d
core.headers := $(foreach m,$(core),$(filter-out %-private.h %-internal.h,$(wildcard lib-$m/*.h)))
headers := $(core.headers) \
           $(addprefix lib-sxe-lua/,sxe-lua.h sxe-lua-http.h sxe-lua-clock.h sxe-lua-host.h sxe-lua-repl.h sxe-lua-stats.h) \
           $(if $(tls),lib-sxe-tls/sxe-tls.h lib-sxe-crypto/sxe-crypto.h) $(if $(store),lib-sxe-store/sxe-store.h) $(if $(postgres),lib-sxe-postgres/sxe-postgres.h) $(if $(regex),lib-sxe-regex/sxe-regex.h) lib-sxe-zlib/sxe-zlib.h
# Folders below PREFIX are written relative to the file of pkg-config, so that a tree that was moved is found where it is;
# not in /usr, whose folders pkg-config then would not know as those of the system, which need no flags.
pc_dir    = $(patsubst $(PREFIX)/%,$${prefix}/%,$1)
pc_prefix = $(if $(and $(filter-out /usr,$(PREFIX)),$(filter $(PREFIX)/%,$(LIBDIR))),$${pcfiledir}/$(shell realpath -ms --relative-to=$(LIBDIR)/pkgconfig $(PREFIX)),$(PREFIX))
pc_names := $(patsubst tools/%.pc.in,%,$(wildcard tools/*.pc.in))
pc_built  = $(filter sxe $(modules),$(pc_names))
# Where gdb looks when it loads the shared library.
gdb_dir  = $(PREFIX)/share/gdb/auto-load$(LIBDIR)
# A page of the manual for each public function, in the folder $1.
man3     = awk -v dir=$1 -v date="$$(sed -n 's/^.Dd //p' docs/httpd.1)" -f tools/reference.awk -f tools/reference-man.awk $(headers)
pc_file  = sed 's|@PREFIX@|$(pc_prefix)|; s|@LIBDIR@|$(call pc_dir,$(LIBDIR))|; s|@INCDIR@|$(call pc_dir,$(INCDIR))|; s|@VERSION@|$(VERSION)|' tools/$1.pc.in \
           > $(DESTDIR)$(LIBDIR)/pkgconfig/$1.pc
static: ## build build/release/static/sxe-httpd, a single file without TLS for containers FROM scratch, and sxe-httpd-tls
	@tools/deps.sh check build static
	@$(MAKE) --no-print-directory $(parallel) MODE=release build/release/static/sxe-httpd $(if $(tls),build/release/static/sxe-httpd-tls)
	@echo "built: build/release/static/sxe-httpd; next: packaging/container/Containerfile"

install: release ## install below PREFIX (/usr/local) in DESTDIR
	@$(MAKE) --no-print-directory install-core
	@install -d $(DESTDIR)$(BINDIR) $(DESTDIR)$(MANDIR)/man1
	@install -m 755 $(installed:%=build/release/sxe-%) $(DESTDIR)$(BINDIR)
	@install -m 644 $(filter-out $(core.headers),$(headers)) $(DESTDIR)$(INCDIR)
	@install -m 644 build/release/libsxe-lua.a $(tls:%=build/release/lib%.a) $(scripts:%=build/release/lib%.a) $(DESTDIR)$(LIBDIR)
	@install -m 755 build/release/$(LUA_SONAME) $(DESTDIR)$(LIBDIR)
	@ln -sf $(LUA_SONAME) $(DESTDIR)$(LIBDIR)/libsxe-lua.so
	@install -D -m 755 build/release/lua/sxe.so $(DESTDIR)$(LUA_CDIR)/sxe.so
	@$(foreach p,$(filter-out sxe,$(pc_built)),$(call pc_file,$p) &&) true
	@install -d $(DESTDIR)$(LIBDIR)/cmake/sxe
	@install -m 644 tools/sxe-config.cmake $(DESTDIR)$(LIBDIR)/cmake/sxe
	@sed 's|@VERSION@|$(VERSION)|' tools/sxe-config-version.cmake.in > $(DESTDIR)$(LIBDIR)/cmake/sxe/sxe-config-version.cmake
	@install -d $(DESTDIR)$(gdb_dir)
	@install -m 644 tools/libsxe-gdb.py $(DESTDIR)$(gdb_dir)/$(SONAME)-gdb.py
	@install -d $(DESTDIR)$(PREFIX)/share/sxe/bpftrace
	@install -m 644 tools/bpftrace/*.bt $(DESTDIR)$(PREFIX)/share/sxe/bpftrace
	@install -m 755 tools/flame $(DESTDIR)$(PREFIX)/share/sxe
	@install -m 644 bench/lib/flame.lua $(DESTDIR)$(PREFIX)/share/sxe
	@for m in $(installed); do install -m 644 docs/$$m.1 $(DESTDIR)$(MANDIR)/man1/sxe-$$m.1 || exit 1; done
	@install -d $(DESTDIR)$(MANDIR)/man3 && $(call man3,$(DESTDIR)$(MANDIR)/man3)
	@install -d $(DESTDIR)$(PREFIX)/share/sxe/library/sxe
	@install -m 644 lib-sxe-lua/types/sxe.lua lib-sxe-lua/types/luacheckrc $(DESTDIR)$(PREFIX)/share/sxe/library
	@install -m 644 lib-sxe-lua/types/sxe/*.lua $(DESTDIR)$(PREFIX)/share/sxe/library/sxe
	@install -m 644 docs/load-generator.schema.json $(DESTDIR)$(PREFIX)/share/sxe
	@install -d $(completions:%=$(DESTDIR)$(PREFIX)/share/%)
	@# No program runs, so that a build for another machine can be installed. sxe-http-mpi has the options of sxe-http.
	@$(foreach c,bash zsh fish,install -m 644 packaging/completions/$c/* $(DESTDIR)$(PREFIX)/share/$(filter $c%,$(completions)) &&) true
	@for f in $(if $(filter http-mpi,$(installed)),bash/sxe-http zsh/_sxe-http fish/sxe-http.fish); do \
	    case $$f in bash/*) to=$(word 1,$(completions)) ;; zsh/*) to=$(word 2,$(completions)) ;; *) to=$(word 3,$(completions)) ;; esac; \
	    name=$$(basename $$f | sed 's/sxe-http/sxe-http-mpi/') && \
	    sed 's/sxe-http/sxe-http-mpi/g; s/sxe_http/sxe_http_mpi/g' packaging/completions/$$f > $(DESTDIR)$(PREFIX)/share/$$to/$$name || exit 1; \
	done
	@echo "installed in $(DESTDIR)$(PREFIX)"

install-core: ## install only libsxe.a, libsxe.so.0, their headers and sxe.pc; they need libev, not Lua
	@$(MAKE) --no-print-directory $(parallel) MODE=release core
	@install -d $(DESTDIR)$(LIBDIR)/pkgconfig $(DESTDIR)$(INCDIR)
	@install -m 644 $(core.headers) build/release/include/sxe-log-2010.h $(DESTDIR)$(INCDIR)
	@install -m 644 build/release/libsxe.a $(DESTDIR)$(LIBDIR)
	@install -m 755 build/release/$(SONAME) $(DESTDIR)$(LIBDIR)
	@ln -sf $(SONAME) $(DESTDIR)$(LIBDIR)/libsxe.so
	@$(call pc_file,sxe)

install-module: ## install only the module sxe of a plain Lua host, and its libraries, in LUA_CDIR
	@$(MAKE) --no-print-directory $(parallel) MODE=release module
	@install -d $(DESTDIR)$(LUA_CDIR)
	@install -m 755 build/release/lua/beside/sxe.so build/release/$(SONAME) build/release/$(LUA_SONAME) $(DESTDIR)$(LUA_CDIR)

uninstall: ## remove what install put there
	@rm -f $(apps:%=$(DESTDIR)$(BINDIR)/sxe-%) $(DESTDIR)$(BINDIR)/sxe-http-mpi
	@rm -f $(foreach c,$(completions),$(foreach m,$(apps) http-mpi,$(addprefix $(DESTDIR)$(PREFIX)/share/$c/,sxe-$m _sxe-$m sxe-$m.fish)))
	@rm -f $(DESTDIR)$(LIBDIR)/libsxe.a $(DESTDIR)$(LIBDIR)/$(SONAME) $(DESTDIR)$(LIBDIR)/libsxe.so $(DESTDIR)$(LIBDIR)/$(LUA_SONAME) $(DESTDIR)$(LIBDIR)/libsxe-lua.so $(DESTDIR)$(LUA_CDIR)/sxe.so $(DESTDIR)$(LIBDIR)/libsxe-lua.a $(DESTDIR)$(LIBDIR)/libsxe-tls.a $(DESTDIR)$(LIBDIR)/libsxe-crypto.a $(DESTDIR)$(LIBDIR)/libsxe-store.a $(DESTDIR)$(LIBDIR)/libsxe-postgres.a $(DESTDIR)$(LIBDIR)/libsxe-regex.a $(DESTDIR)$(LIBDIR)/libsxe-zlib.a
	@rm -f $(pc_names:%=$(DESTDIR)$(LIBDIR)/pkgconfig/%.pc) $(apps:%=$(DESTDIR)$(MANDIR)/man1/sxe-%.1) $(DESTDIR)$(MANDIR)/man1/sxe-http-mpi.1
	@pages=$$(mktemp -d) && $(call man3,$$pages) && (cd $$pages && ls) | sed 's|^|$(DESTDIR)$(MANDIR)/man3/|' | xargs rm -f && rm -r $$pages
	@for h in $(notdir $(headers)) sxe-log-2010.h; do rm -f $(DESTDIR)$(INCDIR)/$$h; done
	@rm -rf $(DESTDIR)$(PREFIX)/share/sxe/library $(DESTDIR)$(PREFIX)/share/sxe/bpftrace $(DESTDIR)$(LIBDIR)/cmake/sxe
	@rm -f $(DESTDIR)$(gdb_dir)/$(SONAME)-gdb.py
	@rm -f $(addprefix $(DESTDIR)$(PREFIX)/share/sxe/,load-generator.schema.json flame flame.lua)
	@rmdir $(DESTDIR)$(INCDIR) $(DESTDIR)$(PREFIX)/share/sxe 2>/dev/null || true

dist: ## write build/dist/libsxe-VERSION.tar.gz, which builds without git
	@tools/dist.sh $(VERSION) build/dist

# PLATFORM="arm64 musl": only those.
platforms: ## build and test for debian13, gcc13, debian11, arm64, armhf, m32, c2x, lto, clang and musl (PLATFORM=musl: only that): an hour
	@tools/deps.sh install build check static platforms
	@test/platforms.sh $(PLATFORM)

deb: ## build Debian packages in build/deb, and check them with lintian
	@tools/deps.sh install build check deb
	@tools/deb.sh $(VERSION) build/deb
deb-test: ## install, use and remove the packages of make deb in a chroot; it needs root and takes two minutes
	@tools/deps.sh install deb
	@test/deb.sh build/deb

print-flags: # for tools/lint.sh
	@echo '$(ALL_CFLAGS) -DSXE_LOG_NO_2010 -DSXE_POOL_NO_2010'

clean: ## remove everything built
	@rm -rf build

help: ## print this list
	@sed -n 's/^\([a-z_-]*\):.*## \(.*\)/  make \1@\2/p' Makefile | awk -F@ '{printf "%-24s %s\n", $$1, $$2}'
	@echo "  MODE=release|coverage|debug, V=1 shows the commands, CC= CFLAGS= LDFLAGS= PREFIX= DESTDIR= as usual"

-include $(shell find $B -name '*.d' 2>/dev/null)
