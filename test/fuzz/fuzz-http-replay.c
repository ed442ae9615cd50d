/* SPDX-License-Identifier: MIT
 *
 * Any bytes as an access log or a HAR file: the requests that are taken from it are valid, and in
 * order.
 */
#include "replay.h"

#include "check-request.h"

enum { SIZE_MAX_TRIED = 65536 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void
check_replay(struct load_requests *requests)
{
    struct load_query query;

    expect(requests->number > 0, "an empty log");
    expect(requests->begin(requests, 0, 1, 1) == 0, "it does not begin");
    for (uint64_t i = 0; i < requests->number; i++) {
        check_query(requests, i);
        expect(i == 0 || requests->times_ns[i - 1] <= requests->times_ns[i], "another order");
    }
    expect(requests->times_ns[0] == 0, "a late beginning");
    expect(requests->next(requests, requests->number, &query) == -1, "more than all");
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const fields[] = {"X-Id: {UUID}"};
    const struct load_template_options options = {.fields = fields, .fields_number = 1};
    char said[1024] = "";
    char path[64];
    struct load_requests *requests;
    FILE *err;
    int fd;

    if (size > SIZE_MAX_TRIED)
        return 0;
    fd = open_bytes(data, size, path, sizeof(path));
    err = fmemopen(said, sizeof(said), "w");
    requests = load_replay_new(path, 0.5 + (double)(size % 3), "h:1", &options, err);
    fclose(err);
    expect(requests != NULL || said[0] != '\0', "refused without a reason");
    if (requests != NULL)
        check_replay(requests);
    load_replay_free(requests);
    close(fd);
    return 0;
}
