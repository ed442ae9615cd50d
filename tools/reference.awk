# SPDX-License-Identifier: MIT
#
# usage: awk -v dir=DIR -v date=DATE -f reference.awk HEADER...    writes DIR/FUNCTION.3 of each public function
#
# A page is made of what the header says: functions declared together, without an empty line between them, share the
# comment above them and a page; the comments after a declaration belong to it. Types that the declarations name are
# shown if the header defines them. `/* ---- Title ----` begins a section, whose functions refer to one another.
function trim(text) {
    sub(/^[ \t]+/, "", text)
    sub(/[ \t]+$/, "", text)
    return text
}
function escaped(text) {
    gsub(/\\/, "\\e", text)
    return text == "" || text ~ /^[.']/ ? "\\&" text : text
}
# The comment's lines, without its marks.
function uncommented(line) {
    sub(/^[ \t]*\/\*+ ?/, "", line)
    sub(/[ \t]*\*\/[ \t]*$/, "", line)
    sub(/^ \* ?/, "", line)
    return line
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
# Lines with an indentation stay as they are; others are filled.
function print_text(text, file,    lines, n, i, is_literal, is_indented) {
    n = split(text, lines, "\n")
    for (i = 1; i <= n; i++) {
        is_indented = lines[i] ~ /^  / || (is_literal && lines[i] ~ /^ /)
        if (is_indented != is_literal)
            print is_indented ? ".Bd -literal" : ".Ed" > file
        is_literal = is_indented
        if (trim(lines[i]) != "")
            print escaped(is_literal ? lines[i] : trim(lines[i])) > file
        else if (!is_literal && i < n)
            print ".Pp" > file
    }
    if (is_literal)
        print ".Ed" > file
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
function end_group(    i) {
    if (names > 0) {
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
    is_section = 0
    notes = ""
    forget_group()
}
function write_page(g,    file, i, t, seen, text, also) {
    file = dir "/" group_name[g, 1] ".3"
    print ".\\\" Made of " header " by tools/reference.awk." > file
    print ".Dd " date > file
    print ".Dt " toupper(group_name[g, 1]) " 3" > file
    print ".Os" > file
    print ".Sh NAME" > file
    for (i = 1; i <= group_names[g]; i++)
        print ".Nm " group_name[g, i] (i < group_names[g] ? " ," : "") > file
    text = group_text[g] != "" ? group_text[g] : group_notes[g] != "" ? group_notes[g] : group_title[g]
    print ".Nd " escaped(summary(text)) > file
    print ".Sh LIBRARY" > file
    print "pkg-config module " module > file
    print ".Sh SYNOPSIS" > file
    print ".In " header > file
    print ".Bd -literal" > file
    printf "%s", group_declarations[g] > file
    print ".Ed" > file
    print ".Sh DESCRIPTION" > file
    print_text(text, file)
    if (group_more[g] != "") {
        print ".Pp" > file
        print_text(group_more[g], file)
    }
    for (t = 1; t <= types; t++)
        if (group_declarations[g] ~ ("(^|[^a-zA-Z0-9_])" type_name[t] "[^a-zA-Z0-9_]")) {
            if (!seen++)
                print ".Sh TYPES" > file
            print ".Bd -literal" > file
            printf "%s", type_text[t] > file
            print ".Ed" > file
        }
    for (i = 1; i <= groups; i++)
        if (i != g && group_section[i] == group_section[g])
            also = also (also == "" ? "" : " ,\n") ".Xr " group_name[i, 1] " 3"
    print ".Sh SEE ALSO" > file
    print (also == "" ? "" : also " .\n.Pp\n") "The essay that opens\n.In " header "\nsays what these functions are for." > file
    close(file)
    for (i = 2; i <= group_names[g]; i++) {
        print ".so man3/" group_name[g, 1] ".3" > (dir "/" group_name[g, i] ".3")
        close(dir "/" group_name[g, i] ".3")
    }
}
function end_header(    g) {
    end_group()
    for (g = 1; g <= groups; g++)
        write_page(g)
    groups = types = sections = 0
    section = section_text = ""
}

FNR == 1 {
    end_header()
    header = FILENAME
    sub(/.*\//, "", header)
    module = match(header, /^sxe-(crypto|lua|store|tls)/) ? substr(header, 1, RLENGTH) : "sxe"
    in_comment = in_type = in_declaration = 0
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
/^$/ { end_group() }
END { end_header() }
