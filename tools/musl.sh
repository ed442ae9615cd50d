#!/bin/sh
# SPDX-License-Identifier: MIT
#
# usage: musl.sh DIR      makes DIR/usr/{include,lib}: archives of what libsxe needs, for musl-gcc
#
# Debian has no libraries for musl. So they are built from Debian's source packages: libev, Lua 5.4, zlib, jansson,
# libedit with libbsd and ncurses, LMDB, PCRE2, libxcrypt. Headers of the kernel are those of this machine. It takes two
# minutes on an idle core, and is not done again if DIR/complete exists. tools/deps.sh platforms has the packages that it
# needs. Programs are linked with DIR/usr/lib/dl-find-object.o and -Wl,--eh-frame-hdr, as test/platforms.sh does.
set -eu
dir=$1
[ ! -e "$dir/complete" ] || exit 0
mkdir -p "$dir/src/lists/partial" "$dir/usr/include" "$dir/usr/lib/pkgconfig"
dir=$(cd "$dir" && pwd)
cd "$dir/src"

# Indexes of sources are read into this folder, so that the lists of the system stay as they are.
sed 's/^Types: deb$/Types: deb-src/' /etc/apt/sources.list.d/debian.sources >debian.sources
apt() {
    apt-get -qq -o Dir::Etc::sourcelist="$PWD/debian.sources" -o Dir::Etc::sourceparts=- -o Dir::State::lists="$PWD/lists" \
        -o Dir::Cache::pkgcache= -o Dir::Cache::srcpkgcache= -o APT::Sandbox::User=root "$@"
}
apt update
release=$(sed -n 's/^VERSION_CODENAME=//p' /etc/os-release)
for source in libev lua5.4 zlib jansson libmd libbsd libedit ncurses lmdb pcre2 libxcrypt; do
    # Not of the suite of security updates: a mirror may lack its sources, and nothing here is for use.
    ls -d "$source"-[0-9]*/ >/dev/null 2>&1 || apt source --only-source -t "$release" "$source" >"$source.said" 2>&1 || { cat "$source.said"; exit 1; }
done

machine=$(uname -m)-linux-gnu
ln -sfn /usr/include/linux "$dir/usr/include/linux"
ln -sfn /usr/include/asm-generic "$dir/usr/include/asm-generic"
ln -sfn "/usr/include/$machine/asm" "$dir/usr/include/asm"
export PKG_CONFIG_LIBDIR="$dir/usr/lib/pkgconfig"
export CC="musl-gcc -isystem $dir/usr/include -L$dir/usr/lib" CFLAGS="-O2 -fPIC"
made() { # made NAME COMMAND...: in the folder of a source, with one line of its name
    [ ! -e "$dir/src/$1.made" ] || return 0
    echo "musl: $1"
    name=$1
    folder=$(ls -d "$1"-[0-9]*/ 2>/dev/null || echo .)
    shift
    (cd "$folder" && eval "$*") >"$dir/src/said" 2>&1 || { tail -n 30 "$dir/src/said"; exit 1; }
    touch "$dir/src/$name.made"
}
configure="{ [ -x configure ] || autoreconf -fi; } && ./configure --quiet --prefix=$dir/usr --enable-static --disable-shared"
install="make -s install"
made libev "$configure && $install"
made zlib "./configure --prefix=$dir/usr --static && $install"
made jansson "$configure && $install"
made lua5.4 "cd src && echo '#define DEB_HOST_MULTIARCH \"musl\"' >lua5.4-deb-multiarch.h && rm -f lua.c luac.c && $CC $CFLAGS -DLUA_USE_POSIX -DLUA_USE_DLOPEN -c *.c && ar rcs $dir/usr/lib/liblua5.4.a *.o &&
    cp lua5.4-deb-multiarch.h lua.h lualib.h lauxlib.h luaconf.h $dir/usr/include"
printf 'Name: lua5.4\nDescription: Lua\nVersion: 5.4\nLibs: -L%s -llua5.4 -lm\nCflags: -I%s\n' "$dir/usr/lib" "$dir/usr/include" \
    >"$dir/usr/lib/pkgconfig/lua5.4.pc"
made libxcrypt "$configure --disable-werror --disable-obsolete-api && $install"
made ncurses "./configure --prefix=$dir/usr --without-cxx --without-cxx-binding --without-ada --without-manpages --without-progs \
    --without-tests --without-debug --with-termlib --disable-widec --enable-overwrite --with-fallbacks=xterm,linux,vt100 && make -s -C include &&
    make -s -C ncurses && make -s -C include install && make -s -C ncurses install"
made libmd "$configure && $install"
# It installs a script of the linker for the shared library that is not there.
made libbsd "$configure && $install && rm -f $dir/usr/lib/libbsd.so"
made libedit "$configure --disable-examples CPPFLAGS=-D__STDC_ISO_10646__=201706L LIBS=-ltinfo && $install"
# Programs name libedit alone, so its archive has what it needs.
made libedit-and-needs "cd $dir/usr/lib && printf 'create all.a\naddlib libedit.a\naddlib libbsd.a\naddlib libmd.a\naddlib libtinfo.a\nsave\nend\n' |
    ar -M && mv all.a libedit.a"
# The unwinder of a gcc for glibc asks this function of glibc for the table of the calls at an address; see dlfcn.h there.
cat >object.c <<'END'
#define _GNU_SOURCE
#include <link.h>
struct found { unsigned long long flags; void *start, *end, *map, *table; unsigned long long more[7]; };
struct search { ElfW(Addr) at; struct found *found; };
static int look(struct dl_phdr_info *info, size_t size, void *user)
{
    struct search *search = user;
    ElfW(Addr) start = 0, end = 0, table = 0;
    (void)size;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &info->dlpi_phdr[i];
        const ElfW(Addr) from = info->dlpi_addr + part->p_vaddr;
        if (part->p_type == PT_GNU_EH_FRAME)
            table = from;
        if (part->p_type == PT_LOAD && search->at - from < part->p_memsz) {
            start = from;
            end = from + part->p_memsz;
        }
    }
    if (end == 0 || table == 0)
        return 0;
    *search->found = (struct found){.start = (void *)start, .end = (void *)end, .table = (void *)table};
    return 1;
}
__attribute__((visibility("hidden"))) int _dl_find_object(void *at, struct found *found);
int _dl_find_object(void *at, struct found *found)
{
    struct search search = {(ElfW(Addr))at, found};
    return dl_iterate_phdr(look, &search) - 1;
}
END
made dl-find-object "$CC $CFLAGS -c -o $dir/usr/lib/dl-find-object.o $dir/src/object.c"
made lmdb "cd libraries/liblmdb && make -s liblmdb.a CC='$CC -fPIC' && cp liblmdb.a $dir/usr/lib && cp lmdb.h $dir/usr/include"
made pcre2 "$configure && $install"
touch "$dir/complete"
