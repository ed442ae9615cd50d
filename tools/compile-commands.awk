# SPDX-License-Identifier: MIT
#
# usage: make -nB V=1 build | awk -v dir="$PWD" -f compile-commands.awk > build/compile_commands.json
#
# One entry for each command that compiles a source, as make prints it, in the format that clangd reads.
function escaped(text) {
    gsub(/\\/, "\\\\", text)
    gsub(/"/, "\\\"", text)
    return text
}
BEGIN { printf "[" }
/ -o [^ ]+ / {
    for (i = 1; i <= NF; i++)
        if ($i ~ /^[^-].*\.c$/ && !($i in seen)) {
            seen[$i] = 1
            printf "%s\n{\"directory\": \"%s\", \"file\": \"%s\", \"command\": \"%s\"}", entries++ ? "," : "", escaped(dir), escaped($i), escaped($0)
        }
}
END { print "\n]" }
