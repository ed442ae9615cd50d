/* SPDX-License-Identifier: MIT
 *
 * main() of sxe-http-mpi and its link, with a fake MPI that returns what is sent.
 */
#include "fake-os.h"
#include "leaks.h"
#include "run-program.h"
#include "test-main.h"

#define main sxe_mpi_main
int sxe_mpi_main(int argc, char **argv);
#include "../../../../apps/http/mpi/main-mpi.c"
#undef main

/* ---- MPI ---- */

struct fake_request {
    bool is_receive;
};

static struct fake_request send_request, receive_request = {true};
static struct {
    int rank;
    int ranks;
    bool is_stuck; /* a message that is sent never arrives */
    int error;     /* the error of MPI_Test */
    bool is_there; /* a message is waiting */
    int length;
    char *receiving; /* the buffer of the pending receive */
    char bytes[sizeof(struct load_frame)];
} mpi;

int
MPI_Init(int *argc, char ***argv)
{
    (void)argc;
    (void)argv;
    return 0;
}

int
MPI_Finalize(void)
{
    alarm(0);
    return 0;
}

int
MPI_Abort(MPI_Comm comm, int status)
{
    exit(comm + status);
}

int
MPI_Comm_set_errhandler(MPI_Comm comm, MPI_Errhandler handler)
{
    return comm + handler;
}

int
MPI_Comm_rank(MPI_Comm comm, int *rank)
{
    *rank = mpi.rank;
    return comm;
}

int
MPI_Comm_size(MPI_Comm comm, int *ranks)
{
    *ranks = mpi.ranks;
    return comm;
}

int
MPI_Isend(const void *bytes, int length, MPI_Datatype type, int to, int tag, MPI_Comm comm,
          MPI_Request *request)
{
    memcpy(mpi.bytes, bytes, (size_t)length);
    mpi.length = length;
    mpi.is_there = true;
    *request = &send_request;
    return type + comm + to - to + tag - tag;
}

int
MPI_Irecv(void *bytes, int size, MPI_Datatype type, int from, int tag, MPI_Comm comm,
          MPI_Request *request)
{
    mpi.receiving = bytes;
    *request = &receive_request;
    return type + comm + size - size + from - from + tag - tag;
}

int
MPI_Test(MPI_Request *request, int *is_done, MPI_Status *status)
{
    if ((*request)->is_receive) {
        *is_done = mpi.is_there;
        status->length = mpi.length;
        if (mpi.is_there)
            memcpy(mpi.receiving, mpi.bytes, (size_t)mpi.length);
        mpi.is_there = false;
    } else {
        *is_done = !mpi.is_stuck;
    }
    if (*is_done)
        *request = MPI_REQUEST_NULL;
    return mpi.error;
}

int
MPI_Get_count(const MPI_Status *status, MPI_Datatype type, int *count)
{
    *count = status->length;
    return type;
}

int
MPI_Cancel(MPI_Request *request)
{
    return *request == MPI_REQUEST_NULL;
}

int
MPI_Request_free(MPI_Request *request)
{
    *request = MPI_REQUEST_NULL;
    return 0;
}

/* ---- The link ---- */

static void
set_up(void)
{
    memset(&mpi, 0, sizeof(mpi));
    mpi.ranks = 1;
}

START_TEST(a_message_is_sent_and_received)
{
    struct load_link link;
    char bytes[8] = "";

    ck_assert(open_rank_link(&link));
    ck_assert_uint_eq(link.receive(&link, 0, bytes, sizeof(bytes)), 0);
    ck_assert(link.send(&link, 0, "hello", 6));
    ck_assert_uint_eq(link.receive(&link, 0, bytes, sizeof(bytes)), 6);
    ck_assert_str_eq(bytes, "hello");
    close_link(&link);
}
END_TEST

START_TEST(no_more_are_sent_than_there_is_room_for)
{
    struct load_link link;

    mpi.is_stuck = true;
    ck_assert(open_rank_link(&link));
    for (unsigned i = 0; i < SLOTS; i++)
        ck_assert(link.send(&link, 0, "hello", 6));
    ck_assert(!link.send(&link, 0, "hello", 6));
    /* A failed send frees its slot as well. */
    mpi.error = 1;
    ck_assert(link.send(&link, 0, "hello", 6));
    close_link(&link);
}
END_TEST

/* ---- The program ---- */

#define RUN_MAIN(...) run_program(sxe_mpi_main, (const char *[]){"sxe-http-mpi", __VA_ARGS__, NULL})

START_TEST(one_rank_runs_a_command)
{
    RUN_MAIN("--version");
    ck_assert_int_eq(ran.status, 0);
    check_has(ran.output, "sxe-http ");
    RUN_MAIN("--nonsense");
    ck_assert_int_eq(ran.status, LOAD_EXIT_USAGE);
}
END_TEST

START_TEST(too_many_ranks_are_refused)
{
    mpi.ranks = LOAD_RANKS_MAX + 1;
    RUN_MAIN("--version");
    ck_assert_int_eq(ran.status, LOAD_EXIT_USAGE);
    check_has(ran.errors, "there are more than 256");
}
END_TEST

START_TEST(a_job_of_which_a_rank_is_gone_is_aborted_with_the_status)
{
    mpi.ranks = 2;
    load_relay_end_ns = 1;
    RUN_MAIN("--nonsense");
    ck_assert_int_eq(ran.status, LOAD_EXIT_USAGE);
}
END_TEST

static void
lack_a_socket(void)
{
    fake_os_fail(FAKE_SOCKETPAIR, 1, 1, EMFILE);
}

START_TEST(without_a_socket_nothing_starts)
{
    ran.prepare = lack_a_socket;
    RUN_MAIN("--version");
    ran.prepare = NULL;
    ck_assert_int_eq(ran.status, LOAD_EXIT_ERRORS);
    check_has(ran.errors, "sxe-http: cannot start: ");
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("MPI");
    TCase *tcase = tcase_create("main");

    tcase_add_checked_fixture(tcase, set_up, NULL);
    tcase_add_test(tcase, a_message_is_sent_and_received);
    tcase_add_test(tcase, no_more_are_sent_than_there_is_room_for);
    tcase_add_test(tcase, one_rank_runs_a_command);
    tcase_add_test(tcase, too_many_ranks_are_refused);
    tcase_add_test(tcase, a_job_of_which_a_rank_is_gone_is_aborted_with_the_status);
    tcase_add_test(tcase, without_a_socket_nothing_starts);
    suite_add_tcase(suite, tcase);
    return sxe_test_main(suite);
}
