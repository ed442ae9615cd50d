/* SPDX-License-Identifier: MIT
 *
 * The fields that a route sets in the requests that it sends on: "Name: value", in which {user},
 * {request_id} and {client} stand for what the server knows of the request.
 */
#include "sxe-http-proxy-private.h"

#include <errno.h>
#include <string.h>

#include "sxe-http-list.h"
#include "sxe-http-rule-internal.h"

enum variable { USER, REQUEST_ID, CLIENT, VARIABLES };

static const char *const variables[VARIABLES] = {
    [USER] = "{user}", [REQUEST_ID] = "{request_id}", [CLIENT] = "{client}"};

/* Fields that frame the request, concern one connection only, or have options of their own. */
static const char *const refused[] = {
    "Connection", "Content-Length", "Expect",  "Host", "Keep-Alive",        "Proxy-Connection",
    "TE",         "Trailer",        "Upgrade", "Via",  "Transfer-Encoding",
};

char
sxe__http_fold_cgi_byte(char byte)
{
    const char letter = (char)(byte | 0x20);

    return (letter >= 'a' && letter <= 'z') || (byte >= '0' && byte <= '9') ? letter : '-';
}

bool
sxe__http_is_cgi_same(struct sxe_span a, struct sxe_span b)
{
    bool is_same = a.length == b.length;

    for (size_t i = 0; is_same && i < a.length; i++)
        is_same = sxe__http_fold_cgi_byte(a.base[i]) == sxe__http_fold_cgi_byte(b.base[i]);
    return is_same;
}

static bool
is_refused_name(struct sxe_span name)
{
    bool is_refused = false;

    for (unsigned i = 0; i < SXE_COUNT(refused); i++)
        is_refused |= sxe__http_is_cgi_same(name, sxe_http_span(refused[i]));
    return is_refused;
}

/* The variable at the start of the text, or VARIABLES. */
static enum variable
variable_at(struct sxe_span text)
{
    enum variable i = 0;

    while (i < VARIABLES && (text.length < strlen(variables[i]) ||
                             memcmp(text.base, variables[i], strlen(variables[i])) != 0))
        i++;
    return i;
}

/* Whether each brace belongs to a variable, so that a misspelt one is not sent as it is. */
static bool
has_only_variables(struct sxe_span text)
{
    while (text.length > 0) {
        const enum variable found = variable_at(text);
        const size_t step = found < VARIABLES ? strlen(variables[found]) : 1;

        if (found == VARIABLES && (*text.base == '{' || *text.base == '}'))
            return false;
        text = (struct sxe_span){text.base + step, text.length - step};
    }
    return true;
}

/* Split the line at its colon. Without one the value is an empty text. */
static void
split_rule(const char *line, struct sxe__http_rule *rule)
{
    const size_t length = strcspn(line, ":");
    const char *value = line + length + (line[length] == ':');
    size_t value_length;

    value += strspn(value, " \t");
    value_length = strlen(value);
    while (value_length > 0 && strchr(" \t", value[value_length - 1]) != NULL)
        value_length--;
    *rule = (struct sxe__http_rule){{line, length}, {value, value_length}};
}

const char *
sxe__http_rule_fault(const char *line)
{
    struct sxe__http_rule rule;

    split_rule(line, &rule);
    if (line[rule.name.length] != ':')
        return "'Name: value', with a colon";
    if (!sxe_http_is_token(rule.name))
        return "'Name: value' with a name of letters, digits and dashes";
    if (is_refused_name(rule.name))
        return "another field: the server itself sets Host and Via, and those about the connection "
               "and the length of a body";
    if (!sxe_http_is_field_value(rule.value))
        return "'Name: value' in one line, without control bytes";
    if (!has_only_variables(rule.value))
        return "'Name: value' without other braces than {user}, {request_id} and {client}";
    return NULL;
}

bool
sxe__http_rule_read(const char *line, struct sxe__http_rule *rule)
{
    split_rule(line, rule);
    return sxe__http_rule_fault(line) == NULL;
}

static struct sxe_span
value_of_variable(const struct sxe_http_request *request, enum variable variable,
                  struct sxe_http_basic *basic)
{
    return variable == USER         ? sxe_http_user(request, basic)
           : variable == REQUEST_ID ? sxe_http_span(sxe_http_request_id(request))
                                    : sxe_http_span(sxe_http_peer_ip(request));
}

ssize_t
sxe__http_rule_expand(const struct sxe__http_rule *rule, const struct sxe_http_request *request,
                      char *to, size_t room)
{
    struct sxe_span text = rule->value;
    size_t used = 0;

    while (text.length > 0) {
        const enum variable found = variable_at(text);
        const size_t step = found < VARIABLES ? strlen(variables[found]) : 1;
        struct sxe_http_basic basic;
        const struct sxe_span part = found < VARIABLES ? value_of_variable(request, found, &basic)
                                                       : (struct sxe_span){text.base, 1};

        if (part.length > room - used)
            return -EMSGSIZE;
        if (part.length > 0)
            memcpy(to + used, part.base, part.length);
        used += part.length;
        text = (struct sxe_span){text.base + step, text.length - step};
    }
    return (ssize_t)used;
}
