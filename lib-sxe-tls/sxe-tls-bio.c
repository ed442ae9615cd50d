/* SPDX-License-Identifier: MIT
 *
 * Holds the BIO between OpenSSL and the loop's buffers: OpenSSL reads the records of one recv(2)
 * from it, and writes the records for one send(2) to it.
 *
 * All connections of a thread share one BIO, as only one of them calls OpenSSL at a time. The BIO
 * also tracks where records begin and end, which decides how many bytes may be received: there is
 * no place to keep bytes that OpenSSL does not take.
 */
#include "sxe-tls-private.h"

#include <string.h>

uint32_t
sxe__tls_record_has(const struct sxe__tls_connection *c)
{
    return c->header_length < SXE__TLS_HEADER
               ? c->header_length
               : SXE__TLS_HEADER + (uint32_t)(c->body_length - c->body_left);
}

uint32_t
sxe__tls_record_needs(const struct sxe__tls_connection *c)
{
    return c->header_length < SXE__TLS_HEADER ? SXE__TLS_HEADER - c->header_length : c->body_left;
}

/* Follow the records in the bytes that OpenSSL takes: nearly always a header, and then its body. */
static void
follow_records(struct sxe__tls_connection *c, const char *data, uint32_t length)
{
    while (length > 0) {
        uint32_t needs = sxe__tls_record_needs(c);
        uint32_t part = length < needs ? length : needs;

        if (c->header_length < SXE__TLS_HEADER) {
            memcpy(c->header + c->header_length, data, part);
            c->header_length = (uint8_t)(c->header_length + part);
            c->body_length = (uint16_t)(c->header[3] << 8 | c->header[4]);
            c->body_left = c->body_length;
        } else {
            c->body_left = (uint16_t)(c->body_left - part);
        }
        if (c->header_length == SXE__TLS_HEADER && c->body_left == 0) {
            c->header_length = 0;
            c->records++;
        }
        data += part;
        length -= part;
    }
}

static int
bio_read(BIO *bio, char *buffer, size_t size, size_t *taken)
{
    struct sxe__tls_loop *loop = sxe__tls_loop;
    uint32_t left = loop->in_length - loop->in_at;
    uint32_t n = size < left ? (uint32_t)size : left;

    BIO_clear_retry_flags(bio);
    *taken = n;
    if (n == 0) {
        if (!loop->in_is_over)
            BIO_set_retry_read(bio);
        return 0;
    }
    memcpy(buffer, loop->in + loop->in_at, n);
    loop->in_at += n;
    follow_records(loop->current, buffer, n);
    return 1;
}

/* The buffer always has room: see SXE__TLS_OUT_SIZE. */
static int
bio_write(BIO *bio, const char *data, size_t length, size_t *taken)
{
    struct sxe__tls_loop *loop = sxe__tls_loop;

    BIO_clear_retry_flags(bio);
    *taken = 0;
    if (length > SXE__TLS_OUT_SIZE - loop->out_length)
        return 0;
    memcpy(loop->out + loop->out_length, data, length);
    loop->out_length += (uint32_t)length;
    *taken = length;
    return 1;
}

static long
bio_ctrl(BIO *bio, int what, long argument, void *pointer)
{
    SXE_UNUSED_PARAMETER(bio);
    SXE_UNUSED_PARAMETER(argument);
    SXE_UNUSED_PARAMETER(pointer);
    return what == BIO_CTRL_FLUSH || (what == BIO_CTRL_EOF && sxe__tls_loop->in_is_over);
}

BIO *
sxe__tls_bio_new(void)
{
    /* All BIOs of the process share one method, which is never freed. */
    static BIO_METHOD *method;
    BIO *bio = NULL;

    if (method == NULL)
        method = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "sxe");
    if (method != NULL && BIO_meth_set_read_ex(method, bio_read) &&
        BIO_meth_set_write_ex(method, bio_write) && BIO_meth_set_ctrl(method, bio_ctrl))
        bio = BIO_new(method);
    if (bio != NULL)
        BIO_set_init(bio, 1);
    return bio;
}

SSL *
sxe__tls_ssl(struct sxe_tls *tls)
{
    SSL *ssl = SSL_new(tls->store->sites[0].context);

    if (ssl == NULL)
        return NULL;
    BIO_up_ref(sxe__tls_loop->bio);
    SSL_set_bio(ssl, sxe__tls_loop->bio, sxe__tls_loop->bio);
    if (tls->is_client)
        SSL_set_connect_state(ssl);
    else
        SSL_set_accept_state(ssl);
    return ssl;
}
