# SPDX-License-Identifier: MIT
#
# The only file with rules. Each lib-*/module.mk names what its library needs; everything is built below
# build/<mode>, mode being release (the default), debug (ASan + UBSan) or coverage.

MODE    ?= release
PREFIX  ?= /usr/local
DESTDIR ?=
BINDIR  ?= $(PREFIX)/bin
LIBDIR  ?= $(PREFIX)/lib
INCDIR  ?= $(PREFIX)/include/sxe
MANDIR  ?= $(PREFIX)/share/man
VERSION := $(shell sed -n 's/^.define SXE_VERSION  *"\(.*\)"/\1/p' lib-sxe-log/sxe-util.h)
SONAME  := libsxe.so.0
B       := build/$(MODE)

ifneq ($(filter $(MODE),release debug coverage),$(MODE))
$(error MODE is "$(MODE)"; it must be release, debug or coverage)
endif
ifeq ($(V),)
Q := @
endif

# ---- What is built ----

modules := $(patsubst lib-%/module.mk,%,$(wildcard lib-*/module.mk))
core    := sxe sxe-pool sxe-buffer sxe-log
apps    := httpd http
include $(wildcard lib-*/module.mk)

# $(call closure,sxe-pool): the library and everything below it, uppermost first.
closure  = $(call uniq,$1 $(foreach n,$($1.needs),$(call closure,$n)))
uniq     = $(if $1,$(call uniq,$(filter-out $(lastword $1),$1)) $(lastword $1))
includes = $(foreach m,$1,-Ilib-$m) -I$B/include
archives = $(foreach m,$(core),$B/lib$m.a)

# ---- How ----

CC     ?= gcc
AR     ?= ar
CFLAGS ?= -O2 -g
WARN   := -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wsign-conversion -Wundef -Wcast-qual -Wcast-align \
          -Wwrite-strings -Wpointer-arith -Wstrict-prototypes -Wmissing-prototypes -Wmissing-declarations \
          -Wredundant-decls -Wvla -Wformat=2 -Wnull-dereference -Wdouble-promotion
WERROR ?= $(if $(CI),-Werror)
harden := -fstack-protector-strong -fno-omit-frame-pointer

ifeq ($(MODE),release)
mode.cflags  := $(CFLAGS) -D_FORTIFY_SOURCE=2
mode.ldflags := -Wl,-z,relro,-z,now
else ifeq ($(MODE),debug)
mode.cflags  := -O1 -g3 -DSXE_CHECKED=1 -fsanitize=address,undefined -fno-sanitize-recover=all
mode.ldflags := -fsanitize=address,undefined
else
mode.cflags  := -O0 -g --coverage -DSXE_COVERAGE=1
mode.ldflags := --coverage
endif

ALL_CFLAGS  := -std=c11 -D_GNU_SOURCE -fPIC -fvisibility=hidden $(WARN) $(WERROR) $(harden) $(mode.cflags) $(CPPFLAGS)
ALL_LDFLAGS := -pie $(mode.ldflags) $(LDFLAGS)
LIBEV       := -lev
flags       := $(CC) $(ALL_CFLAGS) | $(ALL_LDFLAGS)

.DEFAULT_GOAL := release
.DELETE_ON_ERROR:
.SECONDARY:
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
$1.obj := $$(patsubst %.c,$B/obj/%.o,$$(wildcard lib-$1/*.c))
$B/obj/lib-$1/%.o: lib-$1/%.c $B/flags | $B/include/sxe-log-2010.h
	@mkdir -p $$(@D)
	@$$(call say,CC,$$<)
	$$Q$$(CC) $$(ALL_CFLAGS) -DSXE_LOG_NO_2010 $(call includes,$(call closure,$1)) -MMD -MP -c -o $$@ $$<
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
	$Q$(CC) -shared -Wl,-soname,$(SONAME) -Wl,--version-script=tools/libsxe.map -Wl,--no-undefined \
	    $(filter-out -pie,$(ALL_LDFLAGS)) -o $@ $(core.obj) $(LIBEV)

# ---- Programs: apps/<name>/*.c is build/<mode>/sxe-<name> ----

app_cflags = $(ALL_CFLAGS) -fPIE $(call includes,$(core))
define app_rules
$1.app.obj := $$(patsubst %.c,$B/obj/%.o,$$(wildcard apps/$1/*.c))
$B/obj/apps/$1/%.o: apps/$1/%.c $B/flags | $B/include/sxe-log-2010.h
	@mkdir -p $$(@D)
	@$$(call say,CC,$$<)
	$$Q$$(CC) $$(app_cflags) -DSXE_LOG_NO_2010 -MMD -MP -c -o $$@ $$<
$B/sxe-$1: $$($1.app.obj) $B/libsxe.a
	@$$(call say,LD,$$@)
	$$Q$$(CC) $$(ALL_LDFLAGS) -o $$@ $$($1.app.obj) $B/libsxe.a $$(LIBEV) -lm
endef
$(foreach a,$(apps),$(eval $(call app_rules,$a)))

programs := $(apps:%=$B/sxe-%)

.PHONY: all build release debug-build
build: $(programs) $(foreach m,$(modules),$(call archive,$m)) $B/libsxe.a $B/$(SONAME)

# ---- Tests: test/unit/test-<stem>.c is one check program, linked with fakes of the system ----

LUA_CFLAGS   = $(shell pkg-config --cflags lua5.4 2>/dev/null || echo -I/usr/include/lua5.4)
LUA_LIBS     = $(shell pkg-config --libs lua5.4 2>/dev/null || echo -llua5.4)
CHECK_LIBS   = $(shell pkg-config --libs check 2>/dev/null || echo -lcheck -lm -lrt -lpthread -lsubunit)
test_cflags  = $(ALL_CFLAGS) -fPIE -Wno-null-dereference -Wno-conversion -Wno-sign-conversion \
               $(call includes,$(core)) -Itest/fake $(apps:%=-Iapps/%)
comma       := ,
wraps       := $(addprefix -Wl$(comma)--wrap=,$(shell sed 's/\#.*//' test/fake/wrapped 2>/dev/null))

unit.bin := $(patsubst test/unit/%.c,$B/test/%,$(wildcard test/unit/test-*.c))
fake.obj := $(patsubst %.c,$B/obj/%.o,$(wildcard test/fake/*.c))
# An application's sources linked into a test: its main() becomes sxe_<name>_main().
define app_test_rules
$B/obj/test/apps/$1/%.o: apps/$1/%.c $B/flags | $B/include/sxe-log-2010.h
	@mkdir -p $$(@D)
	@$$(call say,CC,$$<)
	$$Q$$(CC) $$(app_cflags) -DSXE_LOG_NO_2010 -Dmain=sxe_$1_main -MMD -MP -c -o $$@ $$<
$B/test/libapp-$1.a: $$(patsubst %.c,$B/obj/test/%.o,$$(wildcard apps/$1/*.c))
	@mkdir -p $$(@D)
	@rm -f $$@
	$$Q$$(AR) rcsD $$@ $$^
endef
$(foreach a,$(apps),$(eval $(call app_test_rules,$a)))
$B/obj/test/%.o: test/%.c $B/flags | $B/include/sxe-log-2010.h
	@mkdir -p $(@D)
	@$(call say,CC,$<)
	$Q$(CC) $(test_cflags) -MMD -MP -c -o $@ $<
$B/test/test-%: $B/obj/test/unit/test-%.o $(fake.obj) $(apps:%=$B/test/libapp-%.a) $B/libsxe.a test/fake/wrapped
	@mkdir -p $(@D)
	@$(call say,LD,$@)
	$Q$(CC) $(ALL_LDFLAGS) $(wraps) -o $@ $< $(fake.obj) $(apps:%=$B/test/libapp-%.a) $B/libsxe.a -l:libev.a $(CHECK_LIBS) -lm
$B/test/wire: $(wildcard test/wire/*.c) test/wire/wire.h $B/flags
	@mkdir -p $(@D)
	@$(call say,LD,$@)
	$Q$(CC) -std=c11 -D_GNU_SOURCE -O1 -g $(WARN) $(WERROR) $(LUA_CFLAGS) -o $@ $(filter %.c,$^) $(LUA_LIBS)
