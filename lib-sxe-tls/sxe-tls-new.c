/* SPDX-License-Identifier: MIT
 *
 * Holds configurations: making, reading again, deleting.
 */
#include "sxe-tls-private.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "sxe-sized-internal.h"

#define SESSIONS 64u

/* Copy a text. *is_good becomes false if there is no memory. */
static char *
copy_of_text(const char *text, bool *is_good)
{
    char *copy = text == NULL ? NULL : strdup(text);

    *is_good = *is_good && (text == NULL || copy != NULL);
    return copy;
}

static bool
copy_pairs(struct sxe_tls *tls, const struct sxe_tls_config *config)
{
    bool is_good = true;

    tls->pairs = calloc(config->pair_count + 1, sizeof(*tls->pairs));
    if (tls->pairs == NULL)
        return false;
    for (unsigned i = 0; i < config->pair_count; i++) {
        tls->pairs[i].certificate = copy_of_text(config->pairs[i].certificate, &is_good);
        tls->pairs[i].key = copy_of_text(config->pairs[i].key, &is_good);
        tls->pairs[i].staple = copy_of_text(config->pairs[i].staple, &is_good);
    }
    tls->config.pair_count = config->pair_count;
    return is_good;
}

/* Write "http/1.1,h2" in ALPN's form: a byte with its length before each name. */
static bool
copy_protocols(struct sxe_tls *tls, const char *list)
{
    size_t length = list == NULL ? 0 : strlen(list);
    size_t begin = 0;

    tls->protocols = malloc(length + 1);
    if (tls->protocols == NULL || length == 0)
        return tls->protocols != NULL;
    memcpy(tls->protocols + 1, list, length);
    for (size_t i = 0; i <= length; i++) {
        if (i < length && list[i] != ',')
            continue;
        if (i - begin < 1 || i - begin > 255)
            return sxe__tls_refuse("\"%s\" is no list of protocols: \"http/1.1\" is one", list) !=
                   NULL;
        tls->protocols[begin] = (unsigned char)(i - begin);
        begin = i + 1;
    }
    tls->protocols_length = (unsigned)(length + 1);
    return true;
}

static bool
copy_config(struct sxe_tls *tls, const struct sxe_tls_config *config)
{
    bool is_good = true;

    tls->config = *config;
    tls->config.protocols = NULL;
    tls->config.pair_count = 0;
    if (tls->is_client && config->sessions_max != UINT32_MAX) {
        tls->config.sessions_max = config->sessions_max == 0 ? SESSIONS : config->sessions_max;
        tls->sessions = calloc(tls->config.sessions_max, sizeof(*tls->sessions));
        is_good = tls->sessions != NULL;
    }
    tls->config.authorities = copy_of_text(config->authorities, &is_good);
    tls->config.plain_reply = copy_of_text(config->plain_reply, &is_good);
    if (config->tickets == NULL && !tls->is_client)
        tls->own_tickets = tls->config.tickets = sxe_tls_tickets_new(0);
    is_good = is_good && (tls->config.tickets != NULL || tls->is_client);
    return copy_pairs(tls, config) && is_good && copy_protocols(tls, config->protocols);
}

static struct sxe_tls *
new_tls(const struct sxe_tls_config *config, bool is_client, bool is_local)
{
    struct sxe_tls *tls = calloc(1, sizeof(*tls));

    sxe__tls_refuse("%s", strerror(ENOMEM));
    if (tls == NULL)
        return NULL;
    tls->is_client = is_client;
    if (config->profile > SXE_TLS_MODERN || config->verify > SXE_TLS_REQUIRED)
        sxe__tls_refuse("profile and verify must be values of their types");
    else if (copy_config(tls, config) && (!is_local || sxe__tls_local_make(tls)))
        tls->store = sxe__tls_store_new(tls);
    if (tls->store != NULL)
        return tls;
    sxe_tls_delete(tls);
    return NULL;
}

/* Copy the program's configuration. False: it is refused. */
static bool
take_tls_config(struct sxe_tls_config *own, const struct sxe_tls_config *given, size_t size)
{
    if (sxe__sized_take(own, sizeof(*own), given, size, "sxe_tls_new") == 0)
        return true;
    sxe__tls_refuse("%s", SXE__SIZED_NEWER);
    return false;
}

struct sxe_tls *
sxe_tls_new_server_sized(const struct sxe_tls_config *given, size_t size)
{
    struct sxe_tls_config config;

    if (!take_tls_config(&config, given, size))
        return NULL;
    if (config.pair_count == 0)
        return sxe__tls_refuse("a server needs a certificate and its key");
    return new_tls(&config, false, false);
}

struct sxe_tls *
sxe_tls_new_client_sized(const struct sxe_tls_config *given, size_t size)
{
    struct sxe_tls_config config;

    if (!take_tls_config(&config, given, size))
        return NULL;
    if (config.pair_count > 1)
        return sxe__tls_refuse("a client has one certificate, not %u", config.pair_count);
    return new_tls(&config, true, false);
}

struct sxe_tls *
sxe_tls_new_local_sized(const struct sxe_tls_config *given, size_t size)
{
    struct sxe_tls_config config;

    if (!take_tls_config(&config, given, size))
        return NULL;
    if (config.pair_count > 0)
        return sxe__tls_refuse("a local server makes its certificate itself");
    return new_tls(&config, false, true);
}

const char *
sxe_tls_local_pem(const struct sxe_tls *tls)
{
    return tls->local_pem;
}

void
sxe_tls_delete(struct sxe_tls *tls)
{
    if (tls == NULL)
        return;
    sxe__tls_close(tls);
    sxe__tls_store_delete(tls->store);
    sxe__tls_drop_sessions(tls);
    free(tls->sessions);
    sxe_tls_tickets_delete(tls->own_tickets);
    for (unsigned i = 0; i < tls->config.pair_count; i++) {
        free((char *)(uintptr_t)tls->pairs[i].certificate);
        free((char *)(uintptr_t)tls->pairs[i].key);
        free((char *)(uintptr_t)tls->pairs[i].staple);
    }
    free(tls->pairs);
    free(tls->protocols);
    free((char *)(uintptr_t)tls->config.authorities);
    free((char *)(uintptr_t)tls->config.plain_reply);
    X509_free(tls->local);
    EVP_PKEY_free(tls->local_key);
    free(tls->local_pem);
    free(tls);
}

int
sxe_tls_reload(struct sxe_tls *tls)
{
    struct sxe__tls_store *store = sxe__tls_store_new(tls);

    if (store == NULL)
        return -EINVAL;
    sxe__tls_store_delete(tls->store);
    /* authorities that may have been removed verified these sessions */
    sxe__tls_drop_sessions(tls);
    tls->store = store;
    return 0;
}

bool
sxe_tls_is_changed(const struct sxe_tls *tls)
{
    for (unsigned i = 0; i < tls->store->file_count; i++) {
        const struct sxe__tls_file *file = &tls->store->files[i];
        struct stat now = {0};

        if (stat(file->path, &now) < 0 || now.st_ino != file->status.st_ino ||
            now.st_size != file->status.st_size ||
            now.st_mtim.tv_sec != file->status.st_mtim.tv_sec ||
            now.st_mtim.tv_nsec != file->status.st_mtim.tv_nsec)
            return true;
    }
    return false;
}
