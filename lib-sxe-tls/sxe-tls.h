/* SPDX-License-Identifier: MIT
 *
 * What: TLS 1.2 and 1.3 (RFC 5246, 8446) for the connections of lib-sxe, as server and as client,
 * by OpenSSL 3. A program writes and reads as it does without TLS.
 *
 * Place: over lib-sxe, in an archive of its own, so that programs without TLS do not link OpenSSL.
 * lib-sxe calls it through the table of sxe-io.h. It uses no other I/O: records are read from and
 * written to buffers of the loop, so a request on a kept connection costs one recv(2) and one
 * send(2), as without TLS.
 *
 * Shape: a struct sxe_tls is a configuration with its certificates; any number of listeners and
 * connections use it. Each connection is in one of these states:
 *
 *     accepted, or       handshake done          1 s without bytes
 *     connected  SHAKING --------------> ACTIVE <-----------------> QUIET   OpenSSL's buffers of
 *                   | handshake_timeout_ms          next bytes              17 KiB each are freed
 *                   '--> closed
 *
 * A listener's on_connected is called when TCP is connected; what is written then waits for the
 * handshake. A failed handshake ends in on_close with EPROTO, and a line of the log at level 5.
 *
 * Certificates: each name that a client may ask for (SNI) is looked up in the names of all
 * certificates, exactly, then with its first label as *. Of an ECDSA and an RSA certificate with
 * that name the client's algorithms decide. Other names get the first certificate, or are refused.
 *
 * Clients: the server's certificate must lead to an authority of the system's, or of `authorities`,
 * be in its time, and have the host's name or address; `verify` switches that off, and nothing else
 * does. A connection that fails ends with EPROTO, and sxe_tls_failure says why in words. Sessions
 * of the last handshakes are kept in memory and offered to the same host again.
 *
 * Ends: a close sends close_notify. A server takes a client's end without close_notify as an end;
 * to a client a server's is an error (ECONNRESET), because the reply may have been cut.
 *
 * Limits: OpenSSL allocates: about 48 KiB for a connection in use, 15 KiB for a quiet one. Above
 * memory_max no further handshake begins. No renegotiation, no compression, no 0-RTT: early data
 * may be replayed, and only the program knows which requests that would harm.
 *
 * Example:
 *     struct sxe_tls_pair pair = {.certificate = "cert.pem", .key = "key.pem"};
 *     struct sxe_tls_config config = {.pairs = &pair, .pair_count = 1, .protocols = "http/1.1"};
 *     struct sxe_tls *tls = sxe_tls_new_server(&config);
 *
 *     if (tls == NULL)
 *         fprintf(stderr, "%s\n", sxe_tls_problem());
 *     else if (sxe_listen(listener) == 0)
 *         sxe_tls_serve(tls, listener);
 */
#ifndef SXE_TLS_H
#define SXE_TLS_H

#include "sxe.h"

#ifdef __cplusplus
extern "C" {
#endif

#define SXE_TLS_FINGERPRINT_SIZE 65 /* SHA-256 in hexadecimal digits, and the final NUL */
#define SXE_TLS_PROBLEM_SIZE     256

struct sxe_tls;
struct sxe_tls_tickets;

/* Files in PEM. The certificate's file may go on with those of its issuers. */
struct sxe_tls_pair {
    const char *certificate;
    const char *key;
    const char *staple; /* a reply of OCSP in DER for this certificate; NULL: none */
};

/* As Mozilla's guidelines for server-side TLS (5.7) name them. */
enum sxe_tls_profile {
    SXE_TLS_INTERMEDIATE, /* TLS 1.2 with forward secrecy and AEAD, and 1.3 */
    SXE_TLS_MODERN        /* TLS 1.3 */
};

enum sxe_tls_verify {
    SXE_TLS_DEFAULT, /* of a server OFF, of a client REQUIRED */
    SXE_TLS_OFF,
    SXE_TLS_OPTIONAL, /* a peer may have no certificate, but none that is wrong */
    SXE_TLS_REQUIRED
};

/* 0 and NULL mean the default in each field. All texts and arrays are copied. */
struct sxe_tls_config {
    const struct sxe_tls_pair *pairs; /* of a server at least one; of a client at most one */
    unsigned pair_count;
    enum sxe_tls_profile profile;
    const char *protocols;           /* of ALPN, with commas, the preferred one first; NULL: any or
                                    none. A client without any of them is refused; one that says
                                    nothing is not */
    bool refuses_unknown_names;      /* alert unrecognized_name; by default the first certificate */
    enum sxe_tls_verify verify;      /* the peer's certificate */
    const char *authorities;         /* file in PEM of those who sign it; a client's default: the
                                    system's, a server's: none */
    struct sxe_tls_tickets *tickets; /* borrowed; NULL: sessions are resumed in this process only */
    const char *plain_reply;         /* bytes for a client that does not speak TLS */
    uint32_t handshake_timeout_ms;   /* from accept or connect; 10000 */
    uint32_t handshakes_max;         /* steps of handshakes in one turn of the loop; 16 */
    size_t memory_max;               /* bytes of all connections of a thread, for accepting; none */
    uint32_t sessions_max;           /* of a client, kept to be resumed; 64; UINT32_MAX: none */
};

/* Read the files. NULL: sxe_tls_problem says why. */
SXE_PUBLIC SXE_MUST_USE struct sxe_tls *sxe_tls_new_server(const struct sxe_tls_config *config);
SXE_PUBLIC SXE_MUST_USE struct sxe_tls *sxe_tls_new_client(const struct sxe_tls_config *config);

/* Of the last call of this thread that failed, one line: what, and why. */
SXE_PUBLIC const char *sxe_tls_problem(void);

/* After sxe_fini, or once no socket uses it. NULL is allowed. */
SXE_PUBLIC void sxe_tls_delete(struct sxe_tls *tls);

/* Read all files again, for handshakes that begin from now on. If anything is wrong with them
 * (a key that does not fit its certificate, for example), all stays as it was: -EINVAL. */
SXE_PUBLIC SXE_MUST_USE int sxe_tls_reload(struct sxe_tls *tls);

/* Whether a file changed since it was read: its time, size or number. One stat(2) a file. */
SXE_PUBLIC bool sxe_tls_is_changed(const struct sxe_tls *tls);

/* Of a server: whether a certificate has this name, exactly or by a *; and the first name without a
 * * of the first certificate, NULL: it has none. The text is valid until the next reload. */
SXE_PUBLIC bool sxe_tls_has_name(const struct sxe_tls *tls, const char *name);
SXE_PUBLIC const char *sxe_tls_first_name(const struct sxe_tls *tls);

/* ---- Sockets ---- */

/* Have connections that this listener accepts from now on speak TLS. After sxe_init: 0; -EINVAL
 * before it; -ENOMEM. */
SXE_PUBLIC SXE_RETURN sxe_tls_serve(struct sxe_tls *tls, SXE *listener);

/* Before each sxe_connect: speak TLS with that host, whose certificate must have this name or IP
 * address. A name is sent (SNI) without a dot at its end, an address is not. 0; -EINVAL: no name;
 * -ENOMEM. */
SXE_PUBLIC SXE_RETURN sxe_tls_use(struct sxe_tls *tls, SXE *this_, const char *host);

/* After sxe_tls_use: call on_ready once, when the handshake is done and the host is verified.
 * OpenSSL is at work, so it must not read, write or close; it may wake others. */
SXE_PUBLIC void sxe_tls_on_ready(SXE *this_, void (*on_ready)(SXE *socket));

/* Of a connection that failed, in its on_close: why, in one line: what is wrong with the peer's
 * certificate, the alert that it sent, or that its end was missing. "": that is not known. */
SXE_PUBLIC const char *sxe_tls_failure(const SXE *this_);

/* Of a connection whose handshake is done; otherwise NULL, "" and 0. Texts are valid until the
 * socket closes. */
SXE_PUBLIC bool sxe_tls_is_secure(const SXE *this_);
SXE_PUBLIC const char *sxe_tls_version(const SXE *this_); /* "TLSv1.3" */
SXE_PUBLIC const char *sxe_tls_cipher(const SXE *this_);  /* "TLS_AES_256_GCM_SHA384" */
SXE_PUBLIC const char *sxe_tls_name(const SXE *this_);    /* as a client asked for it */
SXE_PUBLIC bool sxe_tls_is_resumed(const SXE *this_);

/* As ALPN chose it: so many bytes of *protocol. */
SXE_PUBLIC unsigned sxe_tls_protocol(const SXE *this_, const char **protocol);

/* The subject of the peer's certificate, that was verified, as RFC 2253 writes it, cut to size, and
 * the SHA-256 of that certificate. The length; 0: it has none. */
SXE_PUBLIC unsigned sxe_tls_peer_subject(const SXE *this_, char *text, size_t size);
SXE_PUBLIC unsigned sxe_tls_peer_fingerprint(const SXE *this_, char text[SXE_TLS_FINGERPRINT_SIZE]);

/* Whether the peer said that it ended: without that, bytes may be missing. */
SXE_PUBLIC bool sxe_tls_has_ended(const SXE *this_);

/* ---- Memory ---- */

struct sxe_tls_counts {
    unsigned shaking;
    unsigned active;
    unsigned quiet;
    size_t memory;       /* bytes of all these: of OpenSSL a number for each state, of ours exact */
    uint64_t handshakes; /* that were completed */
    uint64_t resumed;    /* of them */
    uint64_t failed;     /* that were not completed */
};
SXE_PUBLIC void sxe_tls_count(struct sxe_tls_counts *counts); /* this thread's */

/* ---- Tickets: keys that seal the sessions which clients keep ----
 * In memory that is shared with the children that this process forks, never in a file. Three are
 * good at a time: the current one seals, and the previous and next ones open, too. Servers that
 * ask other certificates of their clients (verify, authorities) do not resume each other's. */

/* Keys of their own from the system's random numbers. lifetime_s: until the current one becomes
 * the previous; 28800. NULL with errno. */
SXE_PUBLIC SXE_MUST_USE struct sxe_tls_tickets *sxe_tls_tickets_new(uint32_t lifetime_s);
SXE_PUBLIC void sxe_tls_tickets_delete(struct sxe_tls_tickets *tickets);

/* The next key becomes the current one, if its time has come. For the one process that made them,
 * now and then; returns the seconds until the next change. */
SXE_PUBLIC uint32_t sxe_tls_tickets_turn(struct sxe_tls_tickets *tickets);

/* ---- For the first minute ---- */

/* A server with a certificate of its own, for localhost, 127.0.0.1 and ::1, that exists in memory
 * only and is good for 30 days. pem: the certificate for clients that want to verify it. NULL:
 * sxe_tls_problem says why. */
SXE_PUBLIC SXE_MUST_USE struct sxe_tls *sxe_tls_new_local(const struct sxe_tls_config *config);
SXE_PUBLIC const char *sxe_tls_local_pem(const struct sxe_tls *tls);
SXE_PUBLIC unsigned sxe_tls_local_fingerprint(const struct sxe_tls *tls,
                                              char text[SXE_TLS_FINGERPRINT_SIZE]);

#ifdef __cplusplus
}
#endif

#endif
