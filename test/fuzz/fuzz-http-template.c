/* SPDX-License-Identifier: MIT
 *
 * Any bytes as a request file, and as the target, a header and the body of a request: a request
 * that is accepted is valid, and stays valid when its placeholders are filled in.
 */
#include "template.h"

#include "check-request.h"

enum { SIZE_MAX_TRIED = 8192, QUERIES = 20 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void
check_all(struct load_requests *requests)
{
    expect(requests->begin(requests, 1, 2, 3) == 0, "it does not begin");
    for (uint64_t i = 0; i < QUERIES; i++)
        check_query(requests, i * i * i * UINT64_C(0x123456789));
}

static void
check_file(const uint8_t *data, size_t size)
{
    const struct load_template_options options = {0};
    struct load_requests *requests = load_templates_new(&options);
    char path[64];
    int fd = open_bytes(data, size, path, sizeof(path));
    const char *wrong = load_templates_add_file(requests, path, "h:1");

    expect(wrong == NULL || *wrong != '\0', "refused without a reason");
    if (wrong == NULL)
        check_all(requests);
    close(fd);
    load_templates_free(requests);
}

/* Cut the text in three at its first two line ends, and check the parts. */
static void
check_parts(char *text, size_t size, bool is_http_1_0)
{
    char *field = memchr(text, '\n', size);
    char *body = field == NULL ? NULL : memchr(field + 1, '\n', size - (size_t)(field + 1 - text));
    const char *const fields[] = {field == NULL ? "X: y" : field + 1};
    const struct load_template_options options = {
        .method = body == NULL ? "GET" : "POST",
        .fields = fields,
        .fields_number = 1,
        .body = body == NULL ? NULL : body + 1,
        .body_length = body == NULL ? 0 : size - (size_t)(body + 1 - text),
        .is_http_1_0 = is_http_1_0};
    struct load_requests *requests = load_templates_new(&options);

    if (field != NULL)
        *field = '\0';
    if (body != NULL)
        *body = '\0';
    if (load_templates_add(requests, "h:1", text, "name") == NULL)
        check_all(requests);
    load_templates_free(requests);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text;

    if (size > SIZE_MAX_TRIED)
        return 0;
    text = malloc(size + 1);
    memcpy(text, size > 0 ? data : (const uint8_t *)"", size);
    text[size] = '\0';
    check_file(data, size);
    check_parts(text, size, size % 2 == 1);
    free(text);
    return 0;
}
