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
 * certificates, exactly, then with its first label as *. If an ECDSA and an RSA certificate have
 * the name, the client's algorithms decide between them. Other names get the first certificate, or
 * are refused.
 *
 * Clients: the server's certificate must lead to an authority of the system's, or of `authorities`,
 * be in its time, and have the host's name or address; `verify` switches that off, and nothing else
 * does. A connection that fails ends with EPROTO, and sxe_tls_failure says why in words. Sessions
 * of the last handshakes are kept in memory and offered to the same host again.
 *
 * Ends: a close sends close_notify. If the peer closes without close_notify, a server takes that as
 * an end; to a client it is an error (ECONNRESET), because the reply may have been cut.
 *
 * Limits: OpenSSL allocates about 48 KiB for a connection in use, 15 KiB for a quiet one. Above
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

/* bytes of a SHA-256 in hexadecimal digits with the final NUL */
#define SXE_TLS_FINGERPRINT_SIZE 65
#define SXE_TLS_PROBLEM_SIZE     256

struct sxe_tls;
struct sxe_tls_tickets;

/* Files in PEM. The certificate's file may go on with the certificates of its issuers. */
struct sxe_tls_pair {
    const char *certificate;
    const char *key;
    const char *staple; /* a file with an OCSP reply in DER for this certificate; NULL: none */
};

/* The profiles have the names of Mozilla's guidelines for server-side TLS (5.7). */
enum sxe_tls_profile {
    SXE_TLS_INTERMEDIATE, /* TLS 1.2 with forward secrecy and AEAD, and TLS 1.3 */
    SXE_TLS_MODERN        /* TLS 1.3 only */
};

enum sxe_tls_verify {
    SXE_TLS_DEFAULT, /* a server: like OFF; a client: like REQUIRED */
    SXE_TLS_OFF,
    SXE_TLS_OPTIONAL, /* a peer may send no certificate; if it sends one, that must be valid */
    SXE_TLS_REQUIRED
};

/* 0 and NULL mean the default in each field. All texts and arrays are copied. */
struct sxe_tls_config {
    /* a server needs at least one pair, a client takes at most one */
    const struct sxe_tls_pair *pairs;
    unsigned pair_count;
    enum sxe_tls_profile profile;
    /* for ALPN, with commas, the preferred one first; NULL: no ALPN. A server refuses a client that
     * offers only other protocols, but not a client that does not use ALPN */
    const char *protocols;
    /* refuse other names with the alert unrecognized_name; by default other names get the first
     * certificate */
    bool refuses_unknown_names;
    enum sxe_tls_verify verify; /* whether the peer's certificate is verified */
    /* a PEM file of authorities that may sign a peer's certificate; default: a client trusts the
     * authorities of the system, a server none */
    const char *authorities;
    struct sxe_tls_tickets *tickets; /* borrowed; NULL: sessions are resumed in this process only */
    const char *plain_reply; /* bytes to send to a client that does not speak TLS; NULL: none */
    /* the longest handshake, counted from accept or connect; 10000 */
    uint32_t handshake_timeout_ms;
    /* how many steps of handshakes one turn of the loop makes at most; 16 */
    uint32_t handshakes_max;
    /* a thread whose connections take more bytes accepts no further one; default: no limit */
    size_t memory_max;
    /* how many sessions a client keeps, to resume them; 64; UINT32_MAX: none */
    uint32_t sessions_max;
};

/* Read the files. NULL: sxe_tls_problem says why. */
SXE_PUBLIC SXE_MUST_USE struct sxe_tls *
sxe_tls_new_server_sized(const struct sxe_tls_config *config, size_t size);
static inline SXE_MUST_USE struct sxe_tls *
sxe_tls_new_server(const struct sxe_tls_config *config_)
{
    return sxe_tls_new_server_sized(config_, sizeof(*config_));
}
SXE_PUBLIC SXE_MUST_USE struct sxe_tls *
sxe_tls_new_client_sized(const struct sxe_tls_config *config, size_t size);
static inline SXE_MUST_USE struct sxe_tls *
sxe_tls_new_client(const struct sxe_tls_config *config_)
{
    return sxe_tls_new_client_sized(config_, sizeof(*config_));
}

/* One line about this thread's last call that failed: what failed, and why. */
SXE_PUBLIC const char *sxe_tls_problem(void);

/* Call it after sxe_fini, or when all sockets that use tls are closed: their on_close may still
 * come. NULL is allowed. */
SXE_PUBLIC void sxe_tls_delete(struct sxe_tls *tls);

/* Read all files again, for handshakes that begin from now on. If anything is wrong with them
 * (a key that does not fit its certificate, for example), all stays as it was: -EINVAL. */
SXE_PUBLIC SXE_MUST_USE int sxe_tls_reload(struct sxe_tls *tls);

/* Whether a file's time, size or inode changed since it was read. One stat(2) for each file. */
SXE_PUBLIC bool sxe_tls_is_changed(const struct sxe_tls *tls);

/* Whether a certificate of this server has this name, exactly or by a *. */
SXE_PUBLIC bool sxe_tls_has_name(const struct sxe_tls *tls, const char *name);

/* The first name without a * in the server's first certificate; NULL: there is none. The text is
 * valid until the next sxe_tls_reload. */
SXE_PUBLIC const char *sxe_tls_first_name(const struct sxe_tls *tls);

/* ---- Sockets ---- */

/* Have the connections that this listener accepts from now on speak TLS. 0; -EINVAL: sxe_init was
 * not called, tls is a client's, or the socket is a connection; -ENOMEM. */
SXE_PUBLIC SXE_RETURN sxe_tls_serve(struct sxe_tls *tls, SXE *listener);

/* Call this before each sxe_connect: the connection will speak TLS with that host, whose
 * certificate must have this name or IP address. A name is sent (SNI), without a dot at its end; an
 * address is not. 0; -EINVAL: no name, tls is a server's, or the socket is connected or a listener;
 * -ENOMEM. */
SXE_PUBLIC SXE_RETURN sxe_tls_use(struct sxe_tls *tls, SXE *this_, const char *host);

/* Begin TLS on a connection that was plain until now, as STARTTLS and the CONNECT of HTTP proxies
 * want it; the host is as in sxe_tls_use. Output waits for the handshake; if that fails, the socket
 * closes with EPROTO. 0; -EINVAL: no name, tls is a server's, or the socket is not connected or
 * speaks TLS already; -EBUSY: bytes of the peer are unread, or output is unsent; -ENOMEM; any other
 * -errno: the socket is of no use any more, close it. */
SXE_PUBLIC SXE_RETURN sxe_tls_start(struct sxe_tls *tls, SXE *this_, const char *host);

/* After sxe_tls_use or sxe_tls_start: call on_ready once, when the handshake is done and the host
 * is verified. on_ready must not read, write or close (OpenSSL is inside a call); it may wake other
 * tasks. */
SXE_PUBLIC void sxe_tls_on_ready(SXE *this_, void (*on_ready)(SXE *socket));

/* For the on_close of a connection that failed: one line that says why, such as what is wrong with
 * the peer's certificate, the alert that the peer sent, or that it closed without close_notify. "":
 * the reason is not known. */
SXE_PUBLIC const char *sxe_tls_failure(const SXE *this_);

/* Whether this connection speaks TLS and its handshake is done. */
SXE_PUBLIC bool sxe_tls_is_secure(const SXE *this_);

/* These calls return "" and false until the handshake is done. Texts are valid until the socket
 * closes. */
SXE_PUBLIC const char *sxe_tls_version(const SXE *this_); /* "TLSv1.3" */
SXE_PUBLIC const char *sxe_tls_cipher(const SXE *this_);  /* "TLS_AES_256_GCM_SHA384" */
/* the name that the client asked for (SNI); "": none */
SXE_PUBLIC const char *sxe_tls_name(const SXE *this_);
SXE_PUBLIC bool sxe_tls_is_resumed(const SXE *this_);

/* Whether a client's connection offered a session to resume; the server may have refused it. False
 * until the handshake is done. */
SXE_PUBLIC bool sxe_tls_has_offered(const SXE *this_);

/* The protocol that ALPN chose: sets *protocol, without a final NUL, and returns its length. 0 and
 * NULL: none, or the handshake is not done. */
SXE_PUBLIC unsigned sxe_tls_protocol(const SXE *this_, const char **protocol);

/* About the peer's certificate: "", 0 and false if there is none, it was not verified, the
 * handshake is not done, or there is no memory. The functions return the length of the text; size
 * is at least 1.
 *
 * Subject and issuer are in the form of RFC 2253: "CN=a,O=b". They are "" if there is no room for
 * the whole text, since a part of it could be that of another peer. */
SXE_PUBLIC unsigned sxe_tls_peer_subject(const SXE *this_, char *text, size_t size);
SXE_PUBLIC unsigned sxe_tls_peer_issuer(const SXE *this_, char *text, size_t size);

/* The alternative names, with a blank between them: "DNS:a.example IP:192.0.2.1". The kinds are
 * DNS, IP, URI and email. Left out are other kinds, names with a byte that is not printable ASCII,
 * and all names from the first one on for which there is no room. */
SXE_PUBLIC unsigned sxe_tls_peer_names(const SXE *this_, char *text, size_t size);

/* Between which times the certificate is valid, in seconds since 1970. */
SXE_PUBLIC bool sxe_tls_peer_validity(const SXE *this_, int64_t *not_before, int64_t *not_after);

/* The SHA-256 of the certificate, in hexadecimal digits. */
SXE_PUBLIC unsigned sxe_tls_peer_fingerprint(const SXE *this_, char text[SXE_TLS_FINGERPRINT_SIZE]);

/* Whether the peer sent close_notify. If the input ended without it, bytes may be missing. */
SXE_PUBLIC bool sxe_tls_has_ended(const SXE *this_);

/* ---- Memory ---- */

struct sxe_tls_counts {
    unsigned shaking;
    unsigned active;
    unsigned quiet;
    size_t memory; /* how many bytes these connections use: OpenSSL's part estimated, ours exact */
    uint64_t handshakes; /* handshakes that were completed */
    uint64_t resumed;    /* handshakes that resumed a session */
    uint64_t failed;     /* handshakes that were not completed */
};

/* Get the counts of this thread. */
SXE_PUBLIC void sxe_tls_count_sized(struct sxe_tls_counts *counts, size_t size);
static inline void
sxe_tls_count(struct sxe_tls_counts *counts_)
{
    sxe_tls_count_sized(counts_, sizeof(*counts_));
}

/* ---- Tickets: keys that seal the sessions which clients keep ---- The keys are in memory that is
 * shared with the children that this process forks, never in a file. Three keys are valid at a
 * time: the current one seals and opens tickets, the previous and the next one only open them.
 * Servers that demand different certificates of their clients (verify, authorities) do not resume
 * each other's sessions. */

/* Make new keys from the system's random numbers. lifetime_s is how long each key is the current
 * one; 0: 28800. NULL with errno. */
SXE_PUBLIC SXE_MUST_USE struct sxe_tls_tickets *sxe_tls_tickets_new(uint32_t lifetime_s);
SXE_PUBLIC void sxe_tls_tickets_delete(struct sxe_tls_tickets *tickets);

/* Make the next key the current one, if it is time. Only the process that made the keys calls this,
 * now and then. Returns the seconds until the next change. */
SXE_PUBLIC uint32_t sxe_tls_tickets_turn(struct sxe_tls_tickets *tickets);

/* ---- For a first try ---- */

/* Make a server with a certificate for localhost, 127.0.0.1 and ::1 that exists in memory only and
 * is valid for 30 days. NULL: sxe_tls_problem says why. sxe_tls_local_pem returns the certificate,
 * for clients that want to verify it. */
SXE_PUBLIC SXE_MUST_USE struct sxe_tls *sxe_tls_new_local_sized(const struct sxe_tls_config *config,
                                                                size_t size);
static inline SXE_MUST_USE struct sxe_tls *
sxe_tls_new_local(const struct sxe_tls_config *config_)
{
    return sxe_tls_new_local_sized(config_, sizeof(*config_));
}
SXE_PUBLIC const char *sxe_tls_local_pem(const struct sxe_tls *tls);
SXE_PUBLIC unsigned sxe_tls_local_fingerprint(const struct sxe_tls *tls,
                                              char text[SXE_TLS_FINGERPRINT_SIZE]);

#ifdef __cplusplus
}
#endif

#endif
