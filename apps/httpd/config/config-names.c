/* SPDX-License-Identifier: MIT
 *
 * Finds the site whose name a request has.
 */
#include "config-names.h"
#include "config-sites.h"

#include <string.h>
#include <strings.h>

#include "sxe-http-list.h"

/* The name without its port and a final dot. */
static struct sxe_span
host_of(struct sxe_span name)
{
    const char *end = name.length == 0 ? NULL : memrchr(name.base, ':', name.length);

    if (end != NULL && memchr(end, ']', name.length - (size_t)(end - name.base)) == NULL)
        name.length = (size_t)(end - name.base);
    if (name.length > 0 && name.base[name.length - 1] == '.')
        name.length--;
    return name;
}

/* How well a site's name matches the host. 0: it does not match; SIZE_MAX: it is equal; otherwise
 * the length of the part after the *. */
static size_t
length_of_match(const char *pattern, struct sxe_span host)
{
    const size_t length = strlen(pattern);

    if (*pattern != '*')
        return host.length == length && strncasecmp(pattern, host.base, length) == 0 ? SIZE_MAX : 0;
    if (host.length < length ||
        strncasecmp(pattern + 1, host.base + host.length - length + 1, length - 1) != 0)
        return 0;
    return length;
}

const struct config_site *
config_site_of(const struct config_sites *sites, struct sxe_span name)
{
    const struct sxe_span host = host_of(name);
    const struct config_site *best = sites->usual;
    size_t best_fit = 0;

    for (const struct config_site *site = sites->first; site != NULL; site = site->next) {
        for (unsigned i = 0; i < site->names_number; i++) {
            const size_t fits = length_of_match(site->names[i], host);

            /* The list of sites is in reverse order, so of several equal names the one that comes
             * last here is the first one in the file. */
            if (fits > 0 && fits >= best_fit) {
                best_fit = fits;
                best = site;
            }
        }
    }
    return best;
}

bool
config_is_name(const char *name)
{
    const bool is_part = *name == '*';
    const char *rest = is_part ? name + 1 : name;
    size_t length;

    if (is_part && *rest == '\0')
        return true;
    if (is_part && *rest == '.')
        rest++;
    length = strlen(rest);
    if (length == 0 || rest[length - 1] == '.' || strchr(rest, '*') != NULL ||
        !sxe_http_is_host((struct sxe_span){rest, length}))
        return false;
    return *rest == '[' ? !is_part && rest[length - 1] == ']' : strchr(rest, ':') == NULL;
}
