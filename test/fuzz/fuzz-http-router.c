/* SPDX-License-Identifier: MIT
 *
 * The first lines are routes, "GET,PUT /users/{id}"; after an empty line come requests, "GET
 * /users/5". A router must answer them as the list of all its routes does, also for the normal form
 * of each path, about which all layers must agree.
 */
#include <stdint.h>

#include "../unit/common/path-model.h"
#include "../unit/common/router-model.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct line {
    char method[ROUTER_MODEL_TEXT];
    char target[ROUTER_MODEL_TEXT];
    size_t target_length;
};

/* Take the line at the front; one that is too long is cut. Returns its length with the line end. */
static size_t
split_line(struct line *line, const char *data, size_t size)
{
    const char *end = memchr(data, '\n', size);
    const size_t length = end == NULL ? size : (size_t)(end - data);
    const char *blank = memchr(data, ' ', length);
    const size_t method = blank == NULL ? length : (size_t)(blank - data);
    const size_t target = blank == NULL ? 0 : length - method - 1;
    const size_t room = ROUTER_MODEL_TEXT - 1;

    line->target_length = target < room ? target : room;
    snprintf(line->method, sizeof(line->method), "%.*s", (int)method, data);
    memset(line->target, 0, sizeof(line->target));
    if (blank != NULL)
        memcpy(line->target, blank + 1, line->target_length);
    return end == NULL ? size : length + 1;
}

/* Look a request up as a server does: first the normal form of its path, then the route. */
static const char *
check_request(const struct router_model *model, const struct line *line)
{
    const struct sxe_span path = {line->target, line->target_length};
    const char *wrong = path_model_check(path);
    char room[ROUTER_MODEL_TEXT];
    struct sxe_span normal;

    if (wrong == NULL && sxe_http_normalise_path(path, room, sizeof(room), &normal) == 0)
        wrong = router_model_find(model, line->method, normal);
    return wrong != NULL ? wrong : router_model_find(model, line->method, path);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct router_model model;
    const char *wrong = NULL;
    bool is_request = false;
    struct line line;

    router_model_open(&model);
    for (size_t at = 0; at < size && wrong == NULL;) {
        at += split_line(&line, (const char *)data + at, size - at);
        if (is_request)
            wrong = check_request(&model, &line);
        else if (line.method[0] == '\0' || model.number == ROUTER_MODEL_ROUTES)
            is_request = true;
        else
            wrong = router_model_add(&model, line.method, line.target);
    }
    router_model_close(&model);
    if (wrong != NULL) {
        fprintf(stderr, "%s: %s %s\n", wrong, line.method, line.target);
        abort();
    }
    return 0;
}
