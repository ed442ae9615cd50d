/* SPDX-License-Identifier: MIT
 *
 * Logs any bytes, as a message and as a dump, in both formats; each line must be one line.
 */
#include <stdio.h>
#include <stdlib.h>

#include "check-log.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static enum sxe_log_format format;

static void
check_line(void *user, int level, const char *line, size_t length)
{
    char ended[SXE_LOG_LINE_MAX + 1];
    const char *wrong = check_bytes(line, length);

    (void)level;
    if (wrong == NULL) {
        memcpy(ended, line, length);
        ended[length] = '\0';
        if (format == SXE_LOG_JSON)
            wrong = check_json(ended);
        else if (user == NULL)
            wrong = check_text(ended, length);
    }
    if (wrong != NULL) {
        fprintf(stderr, "%s: %.*s\n", wrong, (int)length, line);
        abort();
    }
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static char dumping;
    char *text = malloc(size + 1);

    if (text == NULL)
        return 0;
    if (size > 0)
        memcpy(text, data, size);
    text[size] = '\0';
    for (format = SXE_LOG_TEXT; format <= SXE_LOG_JSON; format++) {
        sxe_log_set_format(format);
        sxe_log_to_function(check_line, NULL);
        SXE_LOG_LINE(SXE_LOG_FATAL, (uint32_t)size, "%s", text);
        sxe_log_to_function(check_line, &dumping);
        SXE_LOG_DUMP_AT(SXE_LOG_FATAL, SXE_NO_ID, text, size);
    }
    free(text);
    return 0;
}
