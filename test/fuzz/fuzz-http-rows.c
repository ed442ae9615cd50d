/* SPDX-License-Identifier: MIT
 *
 * Any bytes as a file of rows, CSV or JSON lines: each row has all columns, each value lies inside
 * of the text, and a file that is refused has a reason.
 */
#include <stdint.h>

#include "check-request.h"
#include "rows.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void
check_rows(const struct load_rows *rows)
{
    volatile unsigned char sum = 0;

    expect(rows->number > 0 && rows->columns > 0, "there are no rows");
    for (uint64_t row = 0; row < rows->number; row++)
        for (unsigned column = 0; column < rows->columns; column++) {
            struct sxe_span cell = load_rows_cell(rows, row, column);

            expect(cell.length <= rows->longest[column], "a value is longer than the longest");
            for (size_t i = 0; i < cell.length; i++)
                sum ^= (unsigned char)cell.base[i];
        }
}

static void
check_file(const char *path)
{
    char why[LOAD_ROWS_WHY] = "";
    struct load_rows *rows = load_rows_read(path, why);

    if (rows != NULL)
        check_rows(rows);
    expect(rows != NULL || *why != '\0', "refused without a reason");
    load_rows_free(rows);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char path[64], link[80];
    int fd = open_bytes(data, size, path, sizeof(path));

    check_file(path);
    /* The suffix of the name selects the format. */
    snprintf(link, sizeof(link), "/tmp/fuzz-http-rows-%d.jsonl", (int)getpid());
    unlink(link);
    expect(symlink(path, link) == 0, "no link");
    check_file(link);
    unlink(link);
    close(fd);
    return 0;
}
