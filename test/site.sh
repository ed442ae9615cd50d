#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Tests the pages of make site: their links, what the reference has, and the search, which a browser runs from files.
set -u
. test/lib.sh
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
site=$work/site
make_site() { build/release/sxe-lua tools/site/site.lua "$site"; }
printed() { # printed FILE WORD: whether a file has a word, as a fixed text
    grep -qF -- "$2" "$1" || { echo "$1 does not have $2"; false; }
}
has_functions() { # an entry for each function that the libraries export
    for library in build/release/libsxe.so.0 build/release/libsxe-*.a; do
        readelf -sW "$library" 2>/dev/null | awk '$4 == "FUNC" && $5 == "GLOBAL" && $6 == "DEFAULT" && $7 != "UND" && $8 ~ /^sxe_[a-z]/ { sub(/@.*/, "", $8); print $8 }'
    done | sort -u >"$work/exported"
    [ -s "$work/exported" ] || return 1
    sed -n 's/^\["\(sxe_[a-z0-9_]*\)","function",.*/\1/p' "$site/search-index.js" | sort -u | comm -23 "$work/exported" - >"$work/more"
    cat "$work/more"
    [ ! -s "$work/more" ]
}
has_versions() { # the version with which each entry came that tools/since-entries.txt lists
    cat "$site"/reference/lua*.html "$site"/reference/sxe-*.html "$site/reference/metrics.html" | grep -o 'class="about">since [0-9]' | wc -l >"$work/versions"
    [ "$(cat "$work/versions")" = "$(wc -l <tools/since-entries.txt)" ] && [ "$(cat "$work/versions")" -gt 500 ]
}
has_options() { # each option that a program's help names
    for program in httpd http lua pool; do
        build/release/sxe-$program --help | sed -n 's/^  *\(-.,\)\{0,1\} *\(--[a-z0-9.-]*\).*/\2/p' | sort -u | while read -r option; do
            grep -qE "^\\[\"sxe-$program .*$option[\", ].*\"option\"" "$site/search-index.js" || echo "sxe-$program $option"
        done
    done >"$work/more"
    # Options that end at once are described in the text of the page.
    grep -vE -- ' --(help|version|completion|man)$' "$work/more" >"$work/missing"
    cat "$work/missing"
    [ ! -s "$work/missing" ]
}
has_modules() { # each function of the definitions for editors
    sed -n 's/^function \([A-Za-z0-9_.:]*\)(.*/\1/p' lib-sxe-lua/types/*.lua lib-sxe-lua/types/sxe/*.lua | sort -u | while read -r call; do
        printed "$site/search-index.js" "[\"$call\",\"Lua call\","
    done >"$work/more"
    cat "$work/more"
    [ ! -s "$work/more" ]
}
loads_nothing_else() {
    ! grep -rnE '<(script|link|img|iframe)[^>]*(src|href)="(https?:)?//' "$site" && ! grep -nE '@import|url\(' "$site/style.css"
}
has_dead_link() { # has_dead_link TEXT: the page with this text is refused, and the message names the page
    rm -rf "$work/tree"
    mkdir "$work/tree"
    cp -R README.md CHANGELOG.md CONTRIBUTING.md SECURITY.md docs tools lib-* apps examples test bench packaging "$work/tree"
    printf '\n%s\n' "$1" >>"$work/tree/docs/log.md"
    lua=$(pwd)/build/release/sxe-lua
    ! (cd "$work/tree" && "$lua" tools/site/site.lua "$work/dead") >"$work/said" 2>&1 && printed "$work/said" docs/log.html
}
found() { # found QUERY LINK: the first result of the search, in a browser that reads files
    chromium --headless --no-sandbox --disable-gpu --user-data-dir="$work/chromium" --virtual-time-budget=20000 --dump-dom \
        "file://$site/search.html?q=$1" 2>/dev/null | grep -o '<ul class="found".*' | sed 's/<\/a>.*//' >"$work/first"
    printed "$work/first" "href=\"$2\""
}

if ! command -v cmark-gfm >/dev/null || ! command -v mandoc >/dev/null; then
    skip "the pages of make site, because cmark-gfm or mandoc is not installed"
    finish site
    exit
fi
check "the site is made, and none of its links is dead" make_site
check "the reference has each exported function" has_functions
check "it has each option of the programs" has_options
check "each Lua call, option and metric says with which version it came" has_versions
check "it has each call of scripts" has_modules
check "it has the metrics" printed "$site/reference/metrics.html" 'id="http_server_request_duration_seconds"'
check "an entry of an option has its first sentence, with all words" printed "$site/search-index.js" \
    'Listen at [IP:]PORT, an IPv6 address in brackets, or at a unix socket, whose path has a slash or begins with “@”'
check "an entry of a call of scripts has its first sentence" printed "$site/search-index.js" '"Read a whole file, or a part of it"'
check "a module that is a function has an entry" printed "$site/search-index.js" '["spawn","Lua call","reference/lua-spawn.html#spawn"'
check "an entry of a module has its sentence" printed "$site/search-index.js" '["sxe.zlib","Lua module","reference/lua-zlib.html","Compressed data'
check "the menu tells pages apart whose titles begin alike" printed "$site/index.html" '>Tutorial: a chat in C</a>'
check "the menu has the short titles of others" printed "$site/index.html" '>The store</a>'
since() { sed -n "/id=\"$2\"/,/<\/section>/p" "$1" | grep -q '<p class="about">since [0-9]'; }
check "a function's entry says since which version it exists" since "$site/reference/lib-sxe.html" sxe_listen
check "so does that of a function of another library" since "$site/reference/lib-sxe-tls.html" sxe_tls_start
check "so does that of a macro" since "$site/reference/lib-sxe-log.html" SXE_ASSERT
check "inline functions have entries" printed "$site/search-index.js" '["sxe_buffer_room","function",'
check "a function's entry says what it does" printed "$site/reference/lib-sxe.html" 'Accept connections (or datagrams)'
check "docs lead to the reference" printed "$site/docs/sxe.html" 'href="../reference/lib-sxe.html#sxe_'
check "no page loads anything from elsewhere" loads_nothing_else
check "a link to a page that does not exist is refused" has_dead_link '[this](nowhere.md)'
check "a link to a heading that does not exist is refused" has_dead_link '[this](pool.md#no-such-heading)'
if command -v chromium >/dev/null; then
    check "the search finds sxe_listen" found sxe_listen 'reference/lib-sxe.html#sxe_listen'
    check "the search finds an option" found '--cache-control' 'reference/sxe-httpd.html#cache-control'
    check "the search finds a call of scripts" found 'task.start' 'reference/lua-task.html#task.start'
else
    skip "the search of the site in a browser, because chromium is not installed"
fi
finish site
