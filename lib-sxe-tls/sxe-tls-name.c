/* SPDX-License-Identifier: MIT
 *
 * Holds the names of certificates: collects them, and finds the site of a name.
 */
#include "sxe-tls-private.h"

#include <openssl/x509v3.h>
#include <stdlib.h>
#include <string.h>

#define NAME_MAX_LENGTH 255u

/* Copy a name in lower case, without a final dot. False: it is no name. */
static bool
fold_name(char folded[NAME_MAX_LENGTH + 1], const char *name, size_t length)
{
    if (length > 0 && name[length - 1] == '.')
        length--;
    if (length == 0 || length > NAME_MAX_LENGTH || memchr(name, '\0', length) != NULL)
        return false;
    for (size_t i = 0; i < length; i++)
        folded[i] = (char)(name[i] >= 'A' && name[i] <= 'Z' ? name[i] + ('a' - 'A') : name[i]);
    folded[length] = '\0';
    return true;
}

/* Add a name of a certificate. Until the sites are made, its `site` is the index of its pair. */
static bool
add_name(struct sxe__tls_store *store, unsigned pair, const ASN1_STRING *text)
{
    char folded[NAME_MAX_LENGTH + 1];
    struct sxe__tls_name *grown;

    if (!fold_name(folded, (const char *)ASN1_STRING_get0_data(text),
                   (size_t)ASN1_STRING_length(text)))
        return true;
    grown = realloc(store->names, (store->name_count + 1) * sizeof(*grown));
    if (grown == NULL)
        return false;
    store->names = grown;
    grown[store->name_count] = (struct sxe__tls_name){strdup(folded), pair};
    return grown[store->name_count++].text != NULL;
}

bool
sxe__tls_add_names(struct sxe__tls_store *store, unsigned pair)
{
    X509 *certificate = store->pairs[pair].certificate;
    GENERAL_NAMES *names = X509_get_ext_d2i(certificate, NID_subject_alt_name, NULL, NULL);
    const X509_NAME *subject = X509_get_subject_name(certificate);
    int common = X509_NAME_get_index_by_NID(subject, NID_commonName, -1);
    bool is_good = true;

    for (int i = 0; i < sk_GENERAL_NAME_num(names); i++) {
        const GENERAL_NAME *name = sk_GENERAL_NAME_value(names, i);

        if (name->type == GEN_DNS)
            is_good = is_good && add_name(store, pair, name->d.dNSName);
    }
    if (names == NULL && common >= 0)
        is_good =
            add_name(store, pair, X509_NAME_ENTRY_get_data(X509_NAME_get_entry(subject, common)));
    GENERAL_NAMES_free(names);
    return is_good;
}

/* Whether the name of a certificate covers the wanted one: "*.example" covers "a.example". */
static bool
is_match(const char *has, const char *wanted)
{
    const char *dot = strchr(wanted, '.');

    return strcmp(has, wanted) == 0 ||
           (has[0] == '*' && has[1] == '.' && dot != NULL && strcmp(has + 1, dot) == 0);
}

bool
sxe__tls_pair_has(const struct sxe__tls_store *store, unsigned pair, const char *name)
{
    for (unsigned i = 0; i < store->name_count; i++) {
        if (store->names[i].site == pair && is_match(store->names[i].text, name))
            return true;
    }
    return false;
}

static int
compare_names(const void *a, const void *b)
{
    return strcmp(((const struct sxe__tls_name *)a)->text, ((const struct sxe__tls_name *)b)->text);
}

void
sxe__tls_sort_names(struct sxe__tls_store *store)
{
    qsort(store->names, store->name_count, sizeof(*store->names), compare_names);
}

static const struct sxe__tls_site *
find_exactly(const struct sxe__tls_store *store, char *text)
{
    struct sxe__tls_name key = {.text = text};
    const struct sxe__tls_name *found =
        bsearch(&key, store->names, store->name_count, sizeof(key), compare_names);

    return found == NULL ? NULL : &store->sites[found->site];
}

const struct sxe__tls_site *
sxe__tls_find(const struct sxe__tls_store *store, const char *name)
{
    char folded[NAME_MAX_LENGTH + 1];
    const struct sxe__tls_site *site;
    char *dot;

    if (store->name_count == 0 || !fold_name(folded, name, strlen(name)))
        return NULL;
    site = find_exactly(store, folded);
    dot = strchr(folded, '.');
    if (site != NULL || dot == NULL || dot == folded)
        return site;
    dot[-1] = '*';
    return find_exactly(store, dot - 1);
}

bool
sxe_tls_has_name(const struct sxe_tls *tls, const char *name)
{
    return sxe__tls_find(tls->store, name) != NULL;
}

const char *
sxe_tls_first_name(const struct sxe_tls *tls)
{
    return tls->store->first_name;
}
