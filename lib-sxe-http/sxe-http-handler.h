/* SPDX-License-Identifier: MIT
 *
 * What: the one signature that all handlers of requests have, written in C or in another language
 * with a binding.
 * Place: sxe-http-router.h stores handlers, sxe-http.h calls them. Calls nothing.
 * Limits: types only; what a request and a response are is said in sxe-http.h.
 */
#ifndef SXE_HTTP_HANDLER_H
#define SXE_HTTP_HANDLER_H

struct sxe_http_request;
struct sxe_http_response;

enum sxe_http_verdict {
    SXE_HTTP_DONE, /* the response is complete */
    SXE_HTTP_LATER /* the response is completed later, by another callback */
};

typedef enum sxe_http_verdict (*sxe_http_handler)(struct sxe_http_request *request,
                                                  struct sxe_http_response *response);

#endif
