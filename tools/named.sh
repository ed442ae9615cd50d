#!/bin/sh
# SPDX-License-Identifier: MIT
#
# usage: named.sh      prints what programs may use, and no page of docs and of the reference of make site names or describes
#
# That is: functions that libraries export, inline functions and macros with arguments of public headers, options of the
# programs, calls and values of the Lua modules, and metrics. The names come from the libraries, from the programs' help and
# from the sources, by other means than those of the reference, so that a name which the reference overlooks is found.
set -u
export LC_ALL=C
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
headers=$(git ls-files --cached --others --exclude-standard 'lib-*.h' | grep -vE -- '-(private|internal)\.h$')

# ---- The names ----
functions() {
    for library in build/release/libsxe.so.0 build/release/libsxe-*.a; do
        readelf -sW "$library" 2>/dev/null | awk '$4 == "FUNC" && $5 == "GLOBAL" && $6 == "DEFAULT" && $7 != "UND" && $8 ~ /^sxe_[a-z]/ { sub(/@.*/, "", $8); print $8 }'
    done
    sed -nE 's/^(static inline .*)?(sxe_[a-z0-9_]+)\(.*/\2/p; s/^# *define +((SXE|sxe)_[A-Za-z0-9_]+)\(.*/\1/p' $headers
}
options() {
    for program in httpd http lua pool; do
        build/release/sxe-$program --help | grep -oE -- '(^|[ ,])--[a-z][a-z0-9.-]*' | sed "s/^[ ,]*/sxe-$program /"
    done
}
structs() { sed -nE 's/^(typedef )?struct (sxe_[a-z0-9_]+) *(\{.*)?$/\2/p' $headers; }
calls() { sed -nE 's/^function ([A-Za-z0-9_.:]+)\(.*/\1/p' lib-sxe-lua/types/*.lua lib-sxe-lua/types/sxe/*.lua; }
metrics() {
    grep -lE '# HELP' -r apps lib-* --include=*.c | xargs grep -ohE '"[a-z]+(_[a-z0-9]+)+"' | tr -d '"'
}

# ---- The pages ----
# pages WORD...: the words of docs, and of the reference: of headers, of Lua modules, of metrics.
mkdir "$work/reference"
awk -v dir="$work/reference" -f tools/reference.awk -f tools/reference-html.awk $headers
build/release/sxe-lua - "$work" >"$work/reference/lua.html" <<'END'
package.path = "tools/site/?.lua;" .. package.path
local index <close> = assert(io.open(arg[1] .. "/index", "w"))
local function note_entries(list)
    for _, entry in ipairs(list) do
        index:write(entry[2], "\t", entry[1], "\t", entry[4], "\n")
    end
end
local metrics, entries = require "metrics".page()
print(metrics)
note_entries(entries)
local list <close> = assert(io.popen "ls lib-sxe-lua/types/*.lua lib-sxe-lua/types/sxe/*.lua docs/*.1")
for path in list:lines() do
    local page = require(path:find "%.1$" and "programs" or "lua-calls").read(path)
    print(page.out and table.concat(page.out, "\n") or "")
    note_entries(page.entries)
    note_entries(page.name and { { page.name, "Lua module", "", page.text } } or {})
end
END
awk -F '\t' -v OFS='\t' '{ print $1, $2, $5 }' "$work/reference/index.tsv" >>"$work/index"
cat README.md docs/*.md "$work"/reference/*.html >"$work/pages"
tr -cs 'A-Za-z0-9_' '\n' <"$work/pages" | sort -u >"$work/words"
tr -cs 'A-Za-z0-9_.:' '\n' <"$work/pages" | sed 's/[.:]*$//' | sort -u >"$work/calls"
for program in httpd http lua pool; do
    mandoc -T ascii docs/$program.1 | sed "s/.$(printf '\b')//g" | grep -oE -- '--[a-z][a-z0-9.-]*' | sed "s/[.-]*$//; s/^/sxe-$program /"
done | sort -u >"$work/options"

# ---- Names that no page has ----
functions | sort -u >"$work/functions"
[ "$(wc -l <"$work/functions")" -gt 400 ] || echo "build/release has no libraries: type make"
comm -23 "$work/functions" "$work/words" | sed 's/$/: a function or macro that no page of docs and of the reference names/'
options | sort -u | comm -23 - "$work/options" | sed 's/$/: an option that no page of the manual names/'
calls | sort -u | comm -23 - "$work/calls" | sed 's/$/: a call of Lua that no page of the reference names/'
structs | sort -u | while read -r name; do
    grep -q "\`$name\`" docs/linking.md || echo "$name: a struct whose rule for other versions docs/linking.md lacks"
done
metrics | sort -u | while read -r name; do
    grep -qxE "(sxe_http_)?$name(_total)?" "$work/words" || echo "$name: a metric that no page of the reference names"
done

# ---- Entries of the reference that say nothing, which the search shows without a text ----
grep -cE '^(Lua call|metric|option|function)' "$work/index" | awk '$1 < 1000 { print "the reference has " $1 " entries only" }'
awk -F '\t' '$1 ~ /^(Lua call|Lua module|Lua value|metric|option|function|macro)$/ && $3 == "" { print $2 ": the reference does not say what this " $1 " does" }' "$work/index"
