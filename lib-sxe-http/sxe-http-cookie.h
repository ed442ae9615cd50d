/* SPDX-License-Identifier: MIT
 *
 * What: cookies of requests and of replies (RFC 6265).
 *
 * Place: handlers read a request's cookies, and add cookies to the reply, before it begins. A
 * client's jar is not here: sxe.client has one for scripts.
 *
 * Shape: a name and a value are text in one field, so the bytes that may not be there are escaped
 * in the value, as in URLs, and sxe_http_cookie decodes them:
 *
 *     Cookie: id=7; name=Ann%20Lee             two cookies; the second's value is "Ann Lee"
 *     Set-Cookie: name=Ann%20Lee; Path=/; HttpOnly; SameSite=Lax
 *
 * Rules:
 *   - Of cookies with the same name the first one counts: browsers send the one with the longest
 *     path first. Names are compared byte by byte. A pair without "=" is left out.
 *   - A cookie whose struct is zero but for name and value is the safest that works on all sites:
 *     for this host alone, all its paths, until the browser ends, not readable by scripts of pages,
 *     not sent with the forms of other sites. Set is_secure if the site speaks TLS.
 *   - A cookie proves nothing: its client may send anything. Sign what must not be changed.
 *
 * Limits: a cookie has at most SXE_HTTP_COOKIE_MAX bytes with its attributes, since browsers drop
 * longer ones; it counts as a line of the reply's fields (fields_max of struct sxe_http_config).
 *
 * Example:
 *     char name[64];
 *
 *     if (sxe_http_cookie(request, "name", name, sizeof(name)) < 0) {
 *         struct sxe_http_cookie cookie = {.name = "name", .value = {"Ann Lee", 7}};
 *
 *         sxe_http_set_cookie(response, &cookie);
 *     }
 */
#ifndef SXE_HTTP_COOKIE_H
#define SXE_HTTP_COOKIE_H

#include "sxe-http.h"

#ifdef __cplusplus
extern "C" {
#endif

#define SXE_HTTP_COOKIE_MAX 4096 /* the largest cookie, with its attributes (RFC 6265, 6.1) */

/* ---- Of a request ---- */

struct sxe_http_cookies {
    const struct sxe_http_request *request; /* private */
    /* private: the present line; NULL: there are no more lines */
    const struct sxe_http_field *field;
    struct sxe_span rest; /* private: the rest of the line */
    struct sxe_span name; /* ro */
    struct sxe_span
        /* ro: without double quotes around it, still escaped; sxe_http_decode_lenient decodes it */
        value;
};

/* Start before the first cookie; sxe_http_cookies_next goes to the first cookie. The request must
 * stay. */
SXE_PUBLIC void sxe_http_cookies_start(struct sxe_http_cookies *cookies,
                                       const struct sxe_http_request *request);

/* Go to the next cookie. False: there are no more cookies. */
SXE_PUBLIC bool sxe_http_cookies_next(struct sxe_http_cookies *cookies);

/* Decode the value of the first cookie of that name into room, with a final NUL: an escape becomes
 * its byte, and a % without two hexadecimal digits stays a %. Returns the length; -ENOENT: no such
 * cookie; -ENOBUFS: no room. */
SXE_PUBLIC SXE_MUST_USE ssize_t sxe_http_cookie(const struct sxe_http_request *request,
                                                const char *name, char *room, size_t size);

/* ---- Of a reply ---- */

/* Whether a browser sends the cookie with requests that come from pages of other sites. */
enum sxe_http_same_site {
    /* the browser sends the cookie with links that the user follows, but not with forms and
     * images */
    SXE_HTTP_SAME_SITE_LAX,
    SXE_HTTP_SAME_SITE_STRICT, /* the browser never sends the cookie */
    SXE_HTTP_SAME_SITE_NONE    /* the browser always sends the cookie; needs is_secure */
};

struct sxe_http_cookie {
    const char *name; /* the cookie's name, a token */
    struct sxe_span value;
    /* the path below which the browser sends the cookie: begins with a slash; NULL: "/" */
    const char *path;
    /* the cookie is also sent to hosts below this one; NULL: only to this host */
    const char *domain;
    int64_t max_age; /* seconds; 0: until the browser ends; negative: remove the cookie */
    enum sxe_http_same_site same_site;
    bool is_secure;      /* the browser sends the cookie over TLS only */
    bool is_for_scripts; /* scripts of the page may read the cookie: HttpOnly is left out */
    /* the browser keeps a separate cookie for each site whose pages embed this site; needs
     * is_secure */
    bool is_partitioned;
};

/* Add a cookie to the reply, in place of a cookie of that name that was added before. Call this
 * before the reply begins. To remove a cookie, give the path and domain with which it was set. 0;
 * -EINVAL: no token, a path or domain that cannot be in the field, SAME_SITE_NONE or is_partitioned
 * without is_secure, a name that begins with __Secure- without is_secure, one that begins with
 * __Host- without is_secure, with a domain or with another path than "/", or the reply has begun;
 * -EMSGSIZE: longer than SXE_HTTP_COOKIE_MAX; -ENOBUFS: no room among the reply's fields. After an
 * error the reply is as it was. */
SXE_PUBLIC SXE_MUST_USE int sxe_http_set_cookie_sized(struct sxe_http_response *response,
                                                      const struct sxe_http_cookie *cookie,
                                                      size_t size);
static inline SXE_MUST_USE int
sxe_http_set_cookie(struct sxe_http_response *response_, const struct sxe_http_cookie *cookie_)
{
    return sxe_http_set_cookie_sized(response_, cookie_, sizeof(*cookie_));
}

/* Remove the unsent fields of the reply, but not its cookies: for an error that is sent in place of
 * the reply that a handler had begun to compose. */
SXE_PUBLIC void sxe_http_keep_cookies(struct sxe_http_response *response);

#ifdef __cplusplus
}
#endif

#endif
