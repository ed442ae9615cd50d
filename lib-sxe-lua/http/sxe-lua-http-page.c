/* SPDX-License-Identifier: MIT
 *
 * With --dev, shows an error in a handler as a page for a browser: the error, the source, the local
 * variables and the request. Every text of the request or the script is escaped.
 */
#include "sxe-lua-http-private.h"

#include <stdio.h>
#include <string.h>

static const char head[] =
    "<!DOCTYPE html><html lang=\"en\"><meta charset=\"utf-8\"><title>Error</title><style>"
    "body{font:16px/1.5 system-ui,sans-serif;margin:2em auto;max-width:60em;padding:0 1em;"
    "color:#222;background:#fff}h1{font-size:1.3em;color:#a00}h2{font-size:1em;margin-bottom:0}"
    "pre{background:#f4f4f4;padding:1em;overflow-x:auto;border-radius:4px}"
    "@media(prefers-color-scheme:dark){body{color:#ddd;background:#181818}h1{color:#f88}"
    "pre{background:#242424}}</style>";

bool
sxe__lua_http_wants_page(const struct sxe__lua_exchange *exchange)
{
    struct sxe_span accept = sxe_http_field_value(exchange->request, "Accept");

    return accept.base != NULL && memmem(accept.base, accept.length, "text/html", 9) != NULL;
}

static void
add_escaped_html(luaL_Buffer *page, struct sxe_span text)
{
    for (size_t i = 0; i < text.length; i++) {
        switch (text.base[i]) {
        case '<':
            luaL_addstring(page, "&lt;");
            break;
        case '>':
            luaL_addstring(page, "&gt;");
            break;
        case '&':
            luaL_addstring(page, "&amp;");
            break;
        default:
            luaL_addchar(page, text.base[i]);
            break;
        }
    }
}

static void
add_section(luaL_Buffer *page, const char *title, struct sxe_span text)
{
    luaL_addstring(page, "<h2>");
    luaL_addstring(page, title);
    luaL_addstring(page, "</h2><pre>");
    add_escaped_html(page, text);
    luaL_addstring(page, "</pre>");
}

/* Add the request line and the head as the client sent them. */
static void
add_page_request(luaL_Buffer *page, const struct sxe__lua_exchange *exchange)
{
    const struct sxe_http_request *request = exchange->request;
    const struct sxe_http_parser *parser = &request->head;

    luaL_addstring(page, "<h2>Request</h2><pre>");
    add_escaped_html(page, sxe_http_method_text(request));
    luaL_addchar(page, ' ');
    add_escaped_html(page, sxe_http_target(request));
    for (uint16_t i = 0; i < parser->number; i++) {
        const struct sxe_http_field *field = &parser->fields[i];

        luaL_addchar(page, '\n');
        add_escaped_html(page, (struct sxe_span){request->data + field->name, field->name_length});
        luaL_addstring(page, ": ");
        add_escaped_html(page,
                         (struct sxe_span){request->data + field->value, field->value_length});
    }
    luaL_addstring(page, "</pre>");
}

void
sxe__lua_http_push_page(lua_State *L, const struct sxe__lua_exchange *exchange,
                        const char *explained)
{
    const char *locals = sxe__lua_push_locals(L);
    const char *text = strchr(explained, '\n');
    luaL_Buffer page;

    luaL_buffinit(L, &page);
    luaL_addstring(&page, head);
    luaL_addstring(&page, "<h1>");
    add_escaped_html(&page, (struct sxe_span){explained, (size_t)(text - explained)});
    luaL_addstring(&page, "</h1>");
    add_section(&page, "Where", (struct sxe_span){text + 1, strlen(text + 1)});
    if (locals != NULL && *locals != '\0')
        add_section(&page, "Local variables", (struct sxe_span){locals, strlen(locals)});
    add_page_request(&page, exchange);
    luaL_addstring(&page, "<p>The log has this error under the id ");
    luaL_addstring(&page, sxe_http_request_id(exchange->request));
    luaL_addstring(&page, ".</p></html>\n");
    luaL_pushresult(&page);
}
