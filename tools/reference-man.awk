# SPDX-License-Identifier: MIT
#
# usage: awk -v dir=DIR -v date=DATE -f reference.awk -f reference-man.awk HEADER...    writes DIR/FUNCTION.3
#
# A group of functions has a page, and each further function of it one that includes that page. Types that the
# declarations name are shown if the header defines them. The functions of a section refer to one another.
function escaped(text) {
    gsub(/\\/, "\\e", text)
    return text == "" || text ~ /^[.']/ ? "\\&" text : text
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
    print ".Sh HISTORY\nSince version " since(group_name[g, 1]) "." > file
    print ".Sh SEE ALSO" > file
    print (also == "" ? "" : also " .\n.Pp\n") "The essay that opens\n.In " header "\nsays what these functions are for." > file
    close(file)
    for (i = 2; i <= group_names[g]; i++) {
        print ".so man3/" group_name[g, 1] ".3" > (dir "/" group_name[g, i] ".3")
        close(dir "/" group_name[g, i] ".3")
    }
}
function write_header(    g) {
    for (g = 1; g <= groups; g++)
        write_page(g)
}
