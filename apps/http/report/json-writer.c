/* SPDX-License-Identifier: MIT
 *
 * Writing JSON piece by piece to a file.
 */
#include "json-writer.h"

#include <math.h>
#include <string.h>

#include "sxe-json.h"

static void
write_json_text(FILE *out, const char *text)
{
    sxe_json_print(out, text, strlen(text), SXE_JSON_UTF8 | SXE_JSON_IN_HTML);
}

static void
break_line(const struct load_json *json)
{
    fprintf(json->out, "\n%*s", (int)json->depth * 2, "");
}

/* Write the comma, the indentation and the name that come before a value. */
static void
lead_in_value(struct load_json *json, const char *name)
{
    if (json->has_values)
        putc(',', json->out);
    if (json->depth > 0 && json->depth < LOAD_JSON_WIDE)
        break_line(json);
    else if (json->has_values)
        putc(' ', json->out);
    json->has_values = true;
    if (name != NULL) {
        write_json_text(json->out, name);
        fputs(": ", json->out);
    }
}

void
load_json_init(struct load_json *json, FILE *out)
{
    *json = (struct load_json){.out = out};
}

void
load_json_init_line(struct load_json *json, FILE *out)
{
    *json = (struct load_json){.out = out, .depth = LOAD_JSON_WIDE};
}

void
load_json_open(struct load_json *json, const char *name, char bracket)
{
    lead_in_value(json, name);
    putc(bracket, json->out);
    json->depth++;
    json->has_values = false;
}

void
load_json_close(struct load_json *json, char bracket)
{
    json->depth--;
    if (json->has_values && json->depth + 1 < LOAD_JSON_WIDE)
        break_line(json);
    putc(bracket, json->out);
    json->has_values = true;
}

void
load_json_text(struct load_json *json, const char *name, const char *text)
{
    if (text == NULL) {
        load_json_null(json, name);
        return;
    }
    lead_in_value(json, name);
    write_json_text(json->out, text);
}

void
load_json_count(struct load_json *json, const char *name, uint64_t value)
{
    lead_in_value(json, name);
    fprintf(json->out, "%llu", (unsigned long long)value);
}

void
load_json_number(struct load_json *json, const char *name, double value)
{
    if (!isfinite(value)) {
        load_json_null(json, name);
        return;
    }
    lead_in_value(json, name);
    fprintf(json->out, "%.15g", value);
}

void
load_json_bool(struct load_json *json, const char *name, bool value)
{
    lead_in_value(json, name);
    fputs(value ? "true" : "false", json->out);
}

void
load_json_null(struct load_json *json, const char *name)
{
    lead_in_value(json, name);
    fputs("null", json->out);
}
