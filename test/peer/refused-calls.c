/* SPDX-License-Identifier: MIT
 *
 * What: a module for Lua scripts with a function for each system call that a confined server does
 * not need; it makes the call in a way that harms nobody.
 *
 * Place: test/outside/httpd-confine.lua loads it with package.loadlib in the server under test.
 *
 * Shape: scripts call a function with three values. It returns one of them if the system call was
 * refused (EPERM), two if the call was made or failed otherwise. The functions call none of Lua's,
 * so that the module works with any build of Lua.
 */
#include <errno.h>
#include <linux/bpf.h>
#include <signal.h>
#include <stddef.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { REFUSED = 1, OTHER = 2 };

static int
told(long result)
{
    return result < 0 && errno == EPERM ? REFUSED : OTHER;
}

#define TRY(name, ...)            \
    int try_##name(void *lua);    \
    int try_##name(void *lua)     \
    {                             \
        (void)lua;                \
        return told(__VA_ARGS__); \
    }

/* The path is empty, or the descriptor or address does not exist: none of these calls can
 * succeed. */
TRY(execve, syscall(SYS_execve, "", NULL, NULL))
TRY(execveat, syscall(SYS_execveat, -1, "", NULL, NULL, 0))
TRY(ptrace, syscall(SYS_ptrace, PTRACE_CONT, getpid(), 0, 0))
TRY(process_vm_readv, syscall(SYS_process_vm_readv, getpid(), NULL, 0, NULL, 0, 0))
TRY(mount, syscall(SYS_mount, NULL, "", NULL, 0, NULL))
TRY(umount, syscall(SYS_umount2, "", 0))
TRY(chroot, syscall(SYS_chroot, ""))
TRY(unshare, syscall(SYS_unshare, 0))
TRY(setns, syscall(SYS_setns, -1, 0))
TRY(setuid, syscall(SYS_setuid, getuid()))
TRY(raw, socket(AF_INET, SOCK_RAW, 1))
TRY(packet, socket(AF_PACKET, SOCK_DGRAM, 0))
TRY(init_module, syscall(SYS_init_module, NULL, 0, NULL))
TRY(clock_settime, syscall(SYS_clock_settime, -1, NULL))
TRY(io_uring, syscall(SYS_io_uring_setup, 0, NULL))
TRY(bpf, syscall(SYS_bpf, BPF_MAP_CREATE, NULL, 0))
TRY(keyctl, syscall(SYS_keyctl, -1, 0, 0, 0, 0))
TRY(kill, kill(getppid(), 0)) /* signal 0 only checks the right to send one */

static long
fork_and_end(void)
{
    pid_t pid = fork();

    if (pid == 0)
        _exit(0);
    return pid > 0 ? waitpid(pid, NULL, 0) : pid;
}
TRY(fork, fork_and_end())

/* x32's getpid: ends a confined process. */
TRY(x32, syscall(0x40000000 + SYS_getpid))
