/* SPDX-License-Identifier: MIT
 * The server for read-write.lua, read-write PORT: POST /7 adds its body to the file 7 of this
 * folder; GET /7 splits the file at each ", ", sorts the parts, and replies with them. */
#include <stdlib.h>
#include <sxe-http.h>
static char text[1 << 20], sorted[sizeof(text)], *parts[sizeof(text) / 2];
static int
by_text(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}
static enum sxe_http_verdict
answer(struct sxe_http_request *request, struct sxe_http_response *response)
{
    bool is_post = sxe_http_method(request) == SXE_HTTP_POST;
    size_t number = 0, used = 0, size = 0;
    char name[24], *end;
    snprintf(name, sizeof(name), "%lu", strtoul(request->path.base + 1, NULL, 10));
    FILE *file = fopen(name, "a+");
    if (file != NULL)
        size = is_post ? fwrite(request->body.base, 1, request->body.length, file)
                       : fread(text, 1, sizeof(text) - 1, file);
    if (file == NULL || fclose(file) != 0 || is_post)
        return sxe_http_reply_status(response, is_post && size == request->body.length ? 204 : 500);
    text[size] = '\0';
    for (char *part = text; (end = strstr(part, ", ")) != NULL; *end = '\0', part = end + 2)
        parts[number++] = part;
    qsort(parts, number, sizeof(*parts), by_text);
    for (size_t i = 0; i < number; i++)
        used += (size_t)snprintf(sorted + used, sizeof(sorted) - used, "%s, ", parts[i]);
    return sxe_http_reply(response, 200, "text/plain", sorted, used);
}
int
main(int argc, char **argv)
{
    struct sxe_http *http = sxe_http_new(&(struct sxe_http_config){.handler = answer});
    unsigned short port = (unsigned short)(argc > 1 ? strtoul(argv[1], NULL, 10) : 8000);
    return http == NULL || sxe_init() < 0 || sxe_http_listen(http, "127.0.0.1", port) < 0 ||
           sxe_run() < 0;
}
