# SPDX-License-Identifier: MIT
#
# usage: awk -v dir=DIR -f reference.awk -f reference-html.awk HEADER...
#
# Writes DIR/LIBRARY.html, the body of a page of the site, and DIR/index.tsv with a line for each header, function and
# type: kind, name, library, anchor, summary. Links are those of the repository, as in docs/*.md.
function escaped(text) {
    gsub(/&/, "\\&amp;", text)
    gsub(/</, "\\&lt;", text)
    gsub(/>/, "\\&gt;", text)
    gsub(/"/, "\\&quot;", text)
    return text
}
# Note an entry of the index. The text is HTML.
function note_entry(kind, name, anchor, text) {
    print kind "\t" name "\t" library "\t" anchor "\t" text > (dir "/index.tsv")
}
# The next line that is not empty is indented: an example with empty lines goes on.
function goes_on(lines, i, n) {
    while (i <= n && trim(lines[i]) == "")
        i++
    return i <= n && lines[i] ~ /^ /
}
# Lines with an indentation stay as they are; others are filled. `What: ` at the start of a paragraph is its heading.
function filled(text,    lines, n, i, html, state, line) {
    n = split(text, lines, "\n")
    for (i = 1; i <= n; i++) {
        line = lines[i]
        if (trim(line) == "") {
            if (state == "pre" && goes_on(lines, i, n))
                html = html "\n"
            else if (state != "") {
                html = html (state == "pre" ? "</code></pre>\n" : "</p>\n")
                state = ""
            }
        } else if (line ~ /^  / || (state == "pre" && line ~ /^ /)) {
            sub(/^    /, "", line)
            html = html (state == "p" ? "</p>\n" : "") (state == "pre" ? "\n" : "<pre><code>") escaped(line)
            state = "pre"
        } else {
            line = escaped(trim(line))
            if (state != "p")
                sub(/^[A-Z][a-z]+:/, "<strong>&</strong>", line)
            html = html (state == "pre" ? "</code></pre>\n" : "") (state == "p" ? "\n" : "<p>") line
            state = "p"
        }
    }
    return html (state == "" ? "" : state == "pre" ? "</code></pre>\n" : "</p>\n")
}
# The first sentence.
function first_sentence(text) {
    gsub(/\n/, " ", text)
    sub(/\. +([A-Z0-9"`(-]|[a-z]+[_.-][a-z]|[a-z_]+:).*$/, "", text)
    sub(/\.$/, "", text)
    return trim(text)
}
function anchor_of_type(name) {
    gsub(/ /, "-", name)
    return name
}
function about(g) {
    return group_text[g] != "" ? group_text[g] : group_notes[g] != "" ? group_notes[g] : group_title[g]
}
function write_group(g, file,    i, also) {
    for (i = 2; i <= group_names[g]; i++)
        also = also "<span id=\"" group_name[g, i] "\"></span>"
    print "<section class=\"entry\">" also "<h4 id=\"" group_name[g, 1] "\">" > file
    for (i = 1; i <= group_names[g]; i++) {
        print (i > 1 ? ", " : "") "<code>" group_name[g, i] "</code>" > file
        note_entry(group_name[g, i] ~ /^SXE/ ? "macro" : "function", group_name[g, i], group_name[g, i], first_sentence(about(g)))
    }
    print "</h4>\n<pre><code class=\"language-c\">" group_declarations[g] "</code></pre>" > file
    print filled(about(g)) "<p class=\"about\">since " since(group_name[g, 1]) "</p></section>" > file
}
function write_header(    file, s, g, t, i) {
    library = path
    sub(/\/[^\/]*$/, "", library)
    file = dir "/" library ".html"
    sub(/^\n*[^\n]*SPDX[^\n]*\n*/, "", essay)
    note_entry("header", header, header, first_sentence(substr(essay, index(essay, ": ") + 2)))
    print "<section class=\"header\"><h2 id=\"" header "\"><code>" header "</code></h2>" > file
    print "<p class=\"about\"><code>pkg-config " module "</code> · <a href=\"" path "\">source of the header</a></p>" > file
    print filled(essay) > file
    if (groups > 0) {
        print "<h3 id=\"" header "-functions\">Functions</h3>\n<table class=\"list\">" > file
        for (g = 1; g <= groups; g++)
            for (i = 1; i <= group_names[g]; i++)
                print "<tr><td><a href=\"#" group_name[g, i] "\"><code>" group_name[g, i] "</code></a></td><td>" \
                    escaped(first_sentence(about(g))) "</td></tr>" > file
        print "</table>" > file
    }
    for (g = 1; g <= groups; g++) {
        if (group_section[g] != s) {
            s = group_section[g]
            print "<h3 id=\"" header "-" s "\">" escaped(group_title[g]) "</h3>" > file
            if (group_more[g] != "")
                print filled(group_more[g]) > file
        }
        write_group(g, file)
    }
    if (types > 0)
        print "<h3 id=\"" header "-types\">Types</h3>" > file
    for (t = 1; t <= types; t++) {
        print "<section class=\"entry\"><h4 id=\"" anchor_of_type(type_name[t]) "\"><code>" type_name[t] "</code></h4>" > file
        print "<pre><code class=\"language-c\">" type_text[t] "</code></pre>" > file
        print filled(type_comment[t]) "</section>" > file
        note_entry("type", type_name[t], anchor_of_type(type_name[t]), first_sentence(type_comment[t]))
    }
    print "</section>" > file
}
