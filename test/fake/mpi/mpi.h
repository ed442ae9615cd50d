/* SPDX-License-Identifier: MIT
 *
 * What: as much of MPI as main-mpi.c uses, for a job of one rank, so that a test of it needs no
 * Open MPI. Place: test-http-mpi-main.c defines these functions, and decides what fails.
 */
#ifndef FAKE_MPI_H
#define FAKE_MPI_H

typedef int MPI_Comm;
typedef int MPI_Datatype;
typedef int MPI_Errhandler;
typedef struct fake_request *MPI_Request;
typedef struct {
    int length;
} MPI_Status;

#define MPI_COMM_WORLD    0
#define MPI_BYTE          0
#define MPI_ERRORS_RETURN 0
#define MPI_REQUEST_NULL  ((MPI_Request)0)
#define MPI_STATUS_IGNORE ((MPI_Status *)0)

int MPI_Init(int *argc, char ***argv);
int MPI_Finalize(void);
int MPI_Abort(MPI_Comm comm, int status);
int MPI_Comm_set_errhandler(MPI_Comm comm, MPI_Errhandler handler);
int MPI_Comm_rank(MPI_Comm comm, int *rank);
int MPI_Comm_size(MPI_Comm comm, int *ranks);
int MPI_Isend(const void *bytes, int length, MPI_Datatype type, int to, int tag, MPI_Comm comm,
              MPI_Request *request);
int MPI_Irecv(void *bytes, int size, MPI_Datatype type, int from, int tag, MPI_Comm comm,
              MPI_Request *request);
int MPI_Test(MPI_Request *request, int *is_done, MPI_Status *status);
int MPI_Get_count(const MPI_Status *status, MPI_Datatype type, int *count);
int MPI_Cancel(MPI_Request *request);
int MPI_Request_free(MPI_Request *request);

#endif
