/* SPDX-License-Identifier: MIT
 *
 * Structs of lib-sxe-tls in programs that were built with an older or a newer header.
 */
#include "sxe-tls.h"

#include "structs.h"

static int
make_server(const void *given, size_t size)
{
    const bool is_made = sxe_tls_new_server_sized(given, size) != NULL;

    ck_assert(!is_made);
    return strstr(sxe_tls_problem(), "newer libsxe") != NULL ? -E2BIG : -EINVAL;
}

static int
make_client(const void *given, size_t size)
{
    struct sxe_tls *tls = sxe_tls_new_client_sized(given, size);
    const int result = result_of(tls);

    sxe_tls_delete(tls);
    return result;
}

static int
make_local(const void *given, size_t size)
{
    struct sxe_tls *tls = sxe_tls_new_local_sized(given, size);
    const int result = result_of(tls);

    sxe_tls_delete(tls);
    return result;
}

/* promise: docs/linking.md: The program is newer than the library: members that the library lacks
 * and that are 0 are ignored. If one is not 0, the call fails with `E2BIG`, and a line of the log
 * names the function. */
START_TEST(a_configuration_of_another_version_is_taken_or_refused)
{
    static const struct sxe_tls_config config = {.pairs = NULL};
    static const struct given_row rows[] = {
        {"sxe_tls_new", make_server, &config, sizeof(config), 16},
        {"sxe_tls_new", make_client, &config, sizeof(config), 16},
        {"sxe_tls_new", make_local, &config, sizeof(config), 16},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        check_given(&rows[i]);
}
END_TEST

static void
count_connections(void *room, size_t size)
{
    sxe_tls_count_sized(room, size);
}

/* promise: docs/linking.md: The library fills a struct: members that the library lacks become 0. */
START_TEST(counts_of_another_version_are_filled)
{
    static const struct filled_row row = {count_connections, sizeof(struct sxe_tls_counts), 16};

    check_filled(&row);
}
END_TEST

#define ROW(type, promised)                     \
    {                                           \
        "" #type, sizeof(struct type), promised \
    }

/* promise: docs/linking.md: A program that uses `libsxe.so.0` works with each later `libsxe.so.0`,
 * without being built again. */
START_TEST(structs_have_their_sizes)
{
    static const struct size_row rows[] = {
        ROW(sxe_tls_config, 80),
        ROW(sxe_tls_counts, 48),
        ROW(sxe_tls_pair, 24),
    };

    check_sizes(rows, sizeof(rows) / sizeof(rows[0]));
}
END_TEST

int
main(void)
{
    const TTest *cases[] = {a_configuration_of_another_version_is_taken_or_refused,
                            counts_of_another_version_are_filled, structs_have_their_sizes, NULL};

    return outside_run("tls-structs", cases);
}
