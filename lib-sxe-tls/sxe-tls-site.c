/* SPDX-License-Identifier: MIT
 *
 * Holds the certificates of a configuration: reads their files, and makes their sites.
 *
 * Each name of each certificate belongs to a site. A site is a context of OpenSSL with two
 * certificates: the first elliptic-curve one and the first RSA one that have the name. Names with
 * the same two certificates share a site.
 */
#include "sxe-tls-private.h"

#include <errno.h>
#include <limits.h>
#include <openssl/ocsp.h>
#include <openssl/pem.h>
#include <stdlib.h>
#include <string.h>

enum { CURVE, RSA_KEY, KINDS };

/* ---- Files ---- */

/* Open a file, and note its status, to see later whether it changed. NULL: the problem is set. */
static BIO *
open_certificate_file(struct sxe__tls_store *store, const char *path)
{
    struct sxe__tls_file *file = &store->files[store->file_count];
    BIO *bio;

    file->path = strdup(path);
    if (file->path == NULL)
        return NULL;
    store->file_count++;
    if (stat(path, &file->status) < 0)
        return sxe__tls_refuse("cannot read %s: %s", path, strerror(errno));
    errno = ENOMEM; /* in case BIO_new_file fails without setting errno */
    bio = BIO_new_file(path, "r");
    if (bio != NULL)
        return bio;
    ERR_clear_error();
    return sxe__tls_refuse("cannot read %s: %s", path, strerror(errno));
}

/* OpenSSL calls this for a password: fail, so that it does not ask at the terminal. */
static int
no_password(char *buffer, int size, int is_writing, void *user)
{
    SXE_UNUSED_PARAMETER(buffer);
    SXE_UNUSED_PARAMETER(size);
    SXE_UNUSED_PARAMETER(is_writing);
    SXE_UNUSED_PARAMETER(user);
    return -1;
}

static bool
read_certificates(struct sxe__tls_store *store, struct sxe__tls_pair_read *pair, const char *path)
{
    BIO *bio = open_certificate_file(store, path);
    X509 *more;

    if (bio == NULL)
        return false;
    pair->certificate = PEM_read_bio_X509_AUX(bio, NULL, no_password, NULL);
    pair->chain = sk_X509_new_null();
    while (pair->certificate != NULL && pair->chain != NULL &&
           (more = PEM_read_bio_X509(bio, NULL, no_password, NULL)) != NULL) {
        if (sk_X509_push(pair->chain, more) > 0)
            continue;
        X509_free(more);
        break;
    }
    BIO_free(bio);
    /* NO_START_LINE after a certificate means the end: the file has no further certificate. */
    if (ERR_GET_REASON(ERR_peek_last_error()) == PEM_R_NO_START_LINE && pair->certificate != NULL)
        ERR_clear_error();
    return (pair->chain != NULL && ERR_peek_error() == 0) ||
           sxe__tls_refuse("%s is no certificate", path) != NULL;
}

static bool
read_key(struct sxe__tls_store *store, struct sxe__tls_pair_read *pair, const char *path)
{
    BIO *bio = open_certificate_file(store, path);

    if (bio == NULL)
        return false;
    pair->key = PEM_read_bio_PrivateKey(bio, NULL, no_password, NULL);
    BIO_free(bio);
    return pair->key != NULL ||
           sxe__tls_refuse("%s is no private key without a password", path) != NULL;
}

static bool
read_staple(struct sxe__tls_store *store, struct sxe__tls_pair_read *pair, const char *path)
{
    BIO *bio = open_certificate_file(store, path);
    OCSP_RESPONSE *reply;
    int length = 0;

    if (bio == NULL)
        return false;
    reply = d2i_OCSP_RESPONSE_bio(bio, NULL);
    if (reply != NULL)
        length = i2d_OCSP_RESPONSE(reply, &pair->staple);
    OCSP_RESPONSE_free(reply);
    BIO_free(bio);
    pair->staple_length = length;
    return length > 0 || sxe__tls_refuse("%s is no reply of OCSP in DER", path) != NULL;
}

static bool
read_pair(struct sxe__tls_store *store, struct sxe__tls_pair_read *pair,
          const struct sxe_tls_pair *files)
{
    if (!read_certificates(store, pair, files->certificate) || !read_key(store, pair, files->key) ||
        (files->staple != NULL && !read_staple(store, pair, files->staple)))
        return false;
    return X509_check_private_key(pair->certificate, pair->key) == 1 ||
           sxe__tls_refuse("%s is not the key of %s", files->key, files->certificate) != NULL;
}

static bool
read_local(const struct sxe_tls *tls, struct sxe__tls_pair_read *pair)
{
    X509_up_ref(tls->local);
    EVP_PKEY_up_ref(tls->local_key);
    pair->certificate = tls->local;
    pair->key = tls->local_key;
    return true;
}

static bool
read_pairs(const struct sxe_tls *tls, struct sxe__tls_store *store)
{
    unsigned count = tls->local != NULL ? 1 : tls->config.pair_count;

    store->pairs = calloc(count + 1, sizeof(*store->pairs));
    store->files = calloc(3 * (size_t)count + 1, sizeof(*store->files));
    if (store->pairs == NULL || store->files == NULL)
        return false;
    for (unsigned i = 0; i < count; i++) {
        struct sxe__tls_pair_read *pair = &store->pairs[store->pair_count++];

        if (!(tls->local != NULL ? read_local(tls, pair) : read_pair(store, pair, &tls->pairs[i])))
            return false;
    }
    return true;
}

static unsigned
kind_of(const struct sxe__tls_pair_read *pair)
{
    int type = EVP_PKEY_get_base_id(pair->key);

    return type == EVP_PKEY_RSA || type == EVP_PKEY_RSA_PSS ? RSA_KEY : CURVE;
}

/* ---- Sites ---- */

/* Find the first pair of each kind of key with this name; name NULL: of all pairs. */
static void
find_members(const struct sxe__tls_store *store, const char *name, unsigned members[KINDS])
{
    members[CURVE] = members[RSA_KEY] = SXE__TLS_NO_PAIR;
    for (unsigned i = store->pair_count; i-- > 0;) {
        if (name == NULL || sxe__tls_pair_has(store, i, name))
            members[kind_of(&store->pairs[i])] = i;
    }
}

static bool
use_pair(SSL_CTX *context, const struct sxe__tls_pair_read *pair)
{
    return SSL_CTX_use_cert_and_key(context, pair->certificate, pair->key, pair->chain, 1) == 1 ||
           sxe__tls_refuse("OpenSSL refuses a certificate") != NULL;
}

/* The index of the site with these members, which is made if there is none. UINT_MAX: the problem
 * is set. */
static unsigned
site_of(struct sxe_tls *tls, struct sxe__tls_store *store, const unsigned members[KINDS])
{
    struct sxe__tls_site *site;

    for (unsigned i = 0; i < store->site_count; i++) {
        if (memcmp(store->sites[i].members, members, sizeof(store->sites[i].members)) == 0)
            return i;
    }
    site = &store->sites[store->site_count];
    site->context = sxe__tls_context(tls);
    if (site->context == NULL)
        return UINT_MAX;
    store->site_count++;
    for (unsigned kind = 0; kind < KINDS; kind++) {
        site->members[kind] = members[kind];
        if (members[kind] != SXE__TLS_NO_PAIR &&
            !use_pair(site->context, &store->pairs[members[kind]]))
            return UINT_MAX;
    }
    return store->site_count - 1;
}

/* Make the default site: the pairs with the first name of the first certificate. If that has no
 * name, the first pair of each kind. */
static bool
make_default(struct sxe_tls *tls, struct sxe__tls_store *store)
{
    bool has_names = store->name_count > 0 && store->names[0].site == 0;
    unsigned members[KINDS];

    for (unsigned i = 0; i < store->name_count && store->first_name == NULL; i++) {
        if (store->names[i].site == 0 && *store->names[i].text != '*')
            store->first_name = store->names[i].text;
    }
    find_members(store, has_names ? store->names[0].text : NULL, members);
    return site_of(tls, store, members) != UINT_MAX;
}

static bool
make_sites(struct sxe_tls *tls, struct sxe__tls_store *store)
{
    unsigned *sites = calloc(store->name_count + 1, sizeof(*sites));
    bool is_good = sites != NULL;

    store->sites = calloc(store->name_count + 1, sizeof(*store->sites));
    is_good = is_good && store->sites != NULL && make_default(tls, store);
    for (unsigned i = 0; is_good && i < store->name_count; i++) {
        unsigned members[KINDS];

        find_members(store, store->names[i].text, members);
        sites[i] = site_of(tls, store, members);
        is_good = sites[i] != UINT_MAX;
    }
    for (unsigned i = 0; is_good && i < store->name_count; i++)
        store->names[i].site = sites[i];
    free(sites);
    if (is_good && store->name_count > 1)
        sxe__tls_sort_names(store);
    return is_good;
}

/* Note the status of the file of authorities before it is read. A missing file is refused when it
 * is read. */
static bool
note_authorities(const struct sxe_tls *tls, struct sxe__tls_store *store)
{
    struct sxe__tls_file *file = &store->files[store->file_count];
    const char *path = tls->config.authorities;

    if (path == NULL || stat(path, &file->status) < 0)
        return true;
    file->path = strdup(path);
    store->file_count += file->path != NULL;
    return file->path != NULL;
}

struct sxe__tls_store *
sxe__tls_store_new(struct sxe_tls *tls)
{
    struct sxe__tls_store *store = calloc(1, sizeof(*store));
    bool is_good;

    sxe__tls_refuse("%s", strerror(ENOMEM));
    is_good = store != NULL && read_pairs(tls, store) && note_authorities(tls, store);
    for (unsigned i = 0; is_good && i < store->pair_count; i++)
        is_good = sxe__tls_add_names(store, i);
    if (is_good && make_sites(tls, store))
        return store;
    sxe__tls_store_delete(store);
    return NULL;
}

void
sxe__tls_store_delete(struct sxe__tls_store *store)
{
    if (store == NULL)
        return;
    for (unsigned i = 0; i < store->pair_count; i++) {
        X509_free(store->pairs[i].certificate);
        sk_X509_pop_free(store->pairs[i].chain, X509_free);
        EVP_PKEY_free(store->pairs[i].key);
        OPENSSL_free(store->pairs[i].staple);
    }
    for (unsigned i = 0; i < store->site_count; i++)
        SSL_CTX_free(store->sites[i].context);
    for (unsigned i = 0; i < store->name_count; i++)
        free(store->names[i].text);
    for (unsigned i = 0; i < store->file_count; i++)
        free(store->files[i].path);
    free(store->pairs);
    free(store->sites);
    free(store->names);
    free(store->files);
    free(store);
}
