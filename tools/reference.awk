# SPDX-License-Identifier: MIT
#
# usage: awk ... -f reference.awk -f reference-man.awk HEADER...     (or reference-html.awk, see there)
#
# Reads what public headers say of their functions, inline functions and macros with arguments, and calls write_header() of
# the other file for each header. Functions declared together, without an empty line between them, share the comment above
# them and are one group; the comments after a declaration belong to it. `/* ---- Title ----` begins a section. The first
# comment of a header is its essay. since() gives the version that a function came with, which tools/symbols.sh keeps.
function trim(text) {
    sub(/^[ \t]+/, "", text)
    sub(/[ \t]+$/, "", text)
    return text
}
# The comment's lines, without its marks.
function uncommented(line) {
    sub(/^[ \t]*\/\*+ ?/, "", line)
    sub(/[ \t]*\*\/[ \t]*$/, "", line)
    sub(/^ \* ?/, "", line)
    return line
}
function since(name,    line, words) {
    if (!are_versions_read) {
        are_versions_read = 1
        while ((getline line < "packaging/debian/libsxe0.symbols") > 0)
            if (split(line, words, /[ @]+/) == 4 && words[2] ~ /^sxe_/)
                version[words[2]] = words[4]
        while ((getline line < "tools/since.txt") > 0)
            if (split(line, words, " ") == 2)
                version[words[1]] = words[2]
    }
    return version[name]
}
function forget_group() {
    comment = ""
    declarations = ""
    names = 0
}
function begin_section(line) {
    section = line
    sub(/^\/\* ---- /, "", section)
    sub(/ ----.*$/, "", section)
    sections++
    section_text = ""
    is_section = 1
}
# The first sentence, as a line of apropos.
function summary(text) {
    gsub(/\n/, " ", text)
    sub(/(\. |; |: | \().*$/, "", text)
    sub(/\.$/, "", text)
    text = trim(text)
    if (length(text) > 100)
        text = substr(text, 1, 97) "..."
    return text
}
# NAME_sized is declared first, because the inline function NAME calls it. Programs call NAME, so the page is about NAME.
function put_sized_last(    i, sized) {
    for (i = 1; i < names; i++)
        if (name[i] == name[i + 1] "_sized") {
            sized = name[i]
            name[i] = name[i + 1]
            name[i + 1] = sized
        }
}
function end_group(    i) {
    if (names > 0) {
        put_sized_last()
        groups++
        group_section[groups] = sections
        group_title[groups] = section
        group_text[groups] = comment
        group_more[groups] = section_text
        group_declarations[groups] = declarations
        group_notes[groups] = notes
        group_names[groups] = names
        for (i = 1; i <= names; i++)
            group_name[groups, i] = name[i]
        if (comment == "" && notes == "")
            print header ": " name[1] ": no comment says what it does" > "/dev/stderr"
    }
    if (names == 0 && is_section)
        section_text = comment
    else if (essay == "" && groups == 0)
        essay = comment
    is_section = 0
    notes = ""
    forget_group()
}
function end_header() {
    end_group()
    if (header != "")
        write_header()
    groups = types = sections = 0
    section = section_text = essay = ""
}

FNR == 1 {
    end_header()
    header = path = FILENAME
    sub(/.*\//, "", header)
    module = path
    sub(/\/[^\/]*$/, "", module)
    sub(/.*lib-/, "", module)
    if ((getline line < ("tools/" module ".pc.in")) < 0)
        module = "sxe"
    close("tools/" module ".pc.in")
    in_comment = in_type = in_declaration = in_inline = in_body = in_macro = 0
}
in_body {
    in_body = $0 !~ /^}/
    next
}
in_macro {
    in_macro = $0 ~ /\\$/
    next
}
in_type {
    type_text[types] = type_text[types] escaped($0) "\n"
    if ($0 ~ /^}/) {
        if ($0 ~ /^} [A-Za-z_]+;/) {
            type_name[types] = $0
            sub(/^} /, "", type_name[types])
            sub(/;.*/, "", type_name[types])
        }
        in_type = 0
    }
    next
}
/^(typedef )?(struct|enum|union) [a-z_0-9]+ *\{/ {
    types++
    type_name[types] = $0
    sub(/ *\{.*/, "", type_name[types])
    sub(/^typedef /, "", type_name[types])
    type_text[types] = escaped($0) "\n"
    type_comment[types] = comment
    in_type = $0 !~ /}/
    next
}
in_comment {
    comment = comment "\n" uncommented($0)
    in_comment = $0 !~ /\*\//
    next
}
/^\/\* ---- / {
    end_group()
    begin_section($0)
    in_comment = $0 !~ /\*\//
    if (in_comment)
        comment = ""
    next
}
/^\/\*/ {
    end_group()
    comment = uncommented($0)
    in_comment = $0 !~ /\*\//
    next
}
/^SXE_PUBLIC extern/ { next }
/^SXE_PUBLIC/ || in_declaration {
    line = $0
    note = ""
    if (match(line, /;[ \t]*\/\*.*\*\//)) {
        note = uncommented(substr(line, RSTART + 1))
        line = substr(line, 1, RSTART)
    }
    if (!in_declaration) {
        sub(/^SXE_PUBLIC /, "", line)
        sub(/^SXE_MUST_USE /, "", line)
        if (line == "")
            line = " "
    }
    whole = in_declaration ? whole " " line : line
    sub(/^ +$/, "", line)
    if (line != "")
        declarations = declarations escaped(line) "\n"
    in_declaration = line !~ /;/
    if (!in_declaration) {
        match(whole, /sxe_[a-z0-9_]+\(/)
        name[++names] = substr(whole, RSTART, RLENGTH - 1)
        if (note != "") {
            notes = notes (notes == "" ? "" : "\n") note
            declarations = substr(declarations, 1, length(declarations) - 1) " /* " escaped(note) " */\n"
        }
    }
    next
}
/^static inline / || in_inline {
    if ($0 == "{") {
        sub(/\n$/, ";\n", declarations)
        in_inline = 0
        in_body = 1
        next
    }
    line = $0
    sub(/^static inline (SXE_MUST_USE )?/, "", line)
    gsub(/_,/, ",", line) # names of parameters end in _, so that they shadow no variable of a program
    gsub(/_\)/, ")", line)
    declarations = declarations escaped(line) "\n"
    if (match(line, /sxe_[a-z0-9_]+\(/))
        name[++names] = substr(line, RSTART, RLENGTH - 1)
    in_inline = 1
    next
}
match($0, /^#define SXE_[A-Z0-9_]+\([^)]*\)/) {
    line = substr($0, 9, RLENGTH - 8)
    declarations = declarations escaped(line) "\n"
    name[++names] = substr(line, 1, index(line, "(") - 1)
    in_macro = $0 ~ /\\$/
    next
}
/^$/ { end_group() }
END { end_header() }
