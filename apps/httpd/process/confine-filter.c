/* SPDX-License-Identifier: MIT
 *
 * The filter of system calls. docs/architecture.md says why it lists the refused calls, and not the
 * allowed ones.
 */
#include "confine.h"

#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/netlink.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#if defined(__x86_64__)
#    define MACHINE      AUDIT_ARCH_X86_64
#    define NUMBERS_MOST 0x3fffffff /* larger numbers are calls of x32, which mean something else */
#elif defined(__aarch64__)
#    define MACHINE      AUDIT_ARCH_AARCH64
#    define NUMBERS_MOST 0x7fffffff
#else
#    define MACHINE      0 /* on other processors the filter is not used */
#    define NUMBERS_MOST 0
#endif

/* Calls that older headers lack, such as those of glibc 2.31. New calls have one number on all
 * processors. */
#ifndef SYS_pidfd_getfd
#    define SYS_pidfd_getfd 438
#endif
#ifndef SYS_mount_setattr
#    define SYS_mount_setattr 442
#endif

#define FIELD(member)         offsetof(struct seccomp_data, member)
#define LOAD(member)          BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (unsigned)FIELD(member))
#define RETURN(action)        BPF_STMT(BPF_RET | BPF_K, action)
#define IS(value, yes, no)    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)(value), yes, no)
#define HAS(bits, yes, no)    BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, (unsigned)(bits), yes, no)
#define ABOVE(value, yes, no) BPF_JUMP(BPF_JMP | BPF_JGT | BPF_K, (unsigned)(value), yes, no)
#define AND(bits)             BPF_STMT(BPF_ALU | BPF_AND | BPF_K, bits)
#define REFUSE                RETURN(SECCOMP_RET_ERRNO | EPERM)
#define ALLOW                 RETURN(SECCOMP_RET_ALLOW)
#define REFUSED(number)       IS(number, 0, 1), REFUSE

static const struct sock_filter filter[] = {
    /* On another architecture the numbers mean other calls: end the process. */
    LOAD(arch),
    IS(MACHINE, 1, 0),
    RETURN(SECCOMP_RET_KILL_PROCESS),
    LOAD(nr),
    ABOVE(NUMBERS_MOST, 0, 1),
    RETURN(SECCOMP_RET_KILL_PROCESS),

    /* Let clone3 fail with ENOSYS, because its flags are in memory, which a filter cannot read.
     * libc then uses clone. */
    IS(SYS_clone3, 0, 1),
    RETURN(SECCOMP_RET_ERRNO | ENOSYS),

    /* Allow clone if it makes a thread, but not if it makes a process. */
    IS(SYS_clone, 0, 4),
    LOAD(args[0]),
    HAS(CLONE_THREAD, 0, 1),
    ALLOW,
    REFUSE,

    /* Allow sockets of TCP, UDP and Unix. Of netlink allow only NETLINK_ROUTE, because getaddrinfo
     * uses it. */
    IS(SYS_socket, 0, 15),
    LOAD(args[0]),
    IS(AF_UNIX, 11, 0),
    IS(AF_NETLINK, 7, 0),
    IS(AF_INET, 1, 0),
    IS(AF_INET6, 0, 9),
    LOAD(args[1]),
    AND(15),
    IS(SOCK_STREAM, 5, 0),
    IS(SOCK_DGRAM, 4, 0),
    REFUSE,
    LOAD(args[2]),
    IS(NETLINK_ROUTE, 1, 0),
    REFUSE,
    ALLOW,
    REFUSE,

    /* Refuse to put bytes into the input of a terminal: a shell that reads them next would execute
     * them. */
    IS(SYS_ioctl, 0, 4),
    LOAD(args[1]),
    IS(TIOCSTI, 0, 1),
    REFUSE,
    ALLOW,

    /* Refuse to start programs, to trace other processes, and to reach their memory and
     * descriptors. */
    REFUSED(SYS_execve),
    REFUSED(SYS_execveat),
#ifdef SYS_fork
    REFUSED(SYS_fork),
    REFUSED(SYS_vfork),
#endif
    REFUSED(SYS_ptrace),
    REFUSED(SYS_process_vm_readv),
    REFUSED(SYS_process_vm_writev),
    REFUSED(SYS_pidfd_getfd),
    REFUSED(SYS_kcmp),

    /* Refuse mounts, other roots, and handles, which open files without a path. */
    REFUSED(SYS_mount),
    REFUSED(SYS_umount2),
    REFUSED(SYS_pivot_root),
    REFUSED(SYS_chroot),
    REFUSED(SYS_move_mount),
    REFUSED(SYS_open_tree),
    REFUSED(SYS_fsopen),
    REFUSED(SYS_fsconfig),
    REFUSED(SYS_fsmount),
    REFUSED(SYS_fspick),
    REFUSED(SYS_mount_setattr),
    REFUSED(SYS_open_by_handle_at),
    REFUSED(SYS_mknodat),
#ifdef SYS_mknod
    REFUSED(SYS_mknod),
#endif
    REFUSED(SYS_swapon),
    REFUSED(SYS_swapoff),
    REFUSED(SYS_quotactl),
    REFUSED(SYS_acct),

    /* Refuse other namespaces, users and capabilities. */
    REFUSED(SYS_unshare),
    REFUSED(SYS_setns),
    REFUSED(SYS_setuid),
    REFUSED(SYS_setreuid),
    REFUSED(SYS_setresuid),
    REFUSED(SYS_setfsuid),
    REFUSED(SYS_setgid),
    REFUSED(SYS_setregid),
    REFUSED(SYS_setresgid),
    REFUSED(SYS_setfsgid),
    REFUSED(SYS_setgroups),
    REFUSED(SYS_capset),

    /* Refuse to control the machine and its clock. */
    REFUSED(SYS_reboot),
    REFUSED(SYS_kexec_load),
    REFUSED(SYS_init_module),
    REFUSED(SYS_finit_module),
    REFUSED(SYS_delete_module),
    REFUSED(SYS_sethostname),
    REFUSED(SYS_setdomainname),
    REFUSED(SYS_settimeofday),
    REFUSED(SYS_clock_settime),
    REFUSED(SYS_clock_adjtime),
    REFUSED(SYS_adjtimex),
    REFUSED(SYS_syslog),
    REFUSED(SYS_vhangup),
    REFUSED(SYS_personality),
#ifdef SYS_iopl
    REFUSED(SYS_iopl),
    REFUSED(SYS_ioperm),
    REFUSED(SYS_modify_ldt),
#endif

    /* Refuse parts of the kernel in which many errors were found; io_uring also evades this
     * filter. */
    REFUSED(SYS_io_uring_setup),
    REFUSED(SYS_io_uring_enter),
    REFUSED(SYS_io_uring_register),
    REFUSED(SYS_bpf),
    REFUSED(SYS_perf_event_open),
    REFUSED(SYS_userfaultfd),
    REFUSED(SYS_add_key),
    REFUSED(SYS_request_key),
    REFUSED(SYS_keyctl),
    ALLOW,
};

int
confine_calls(void)
{
    const struct sock_fprog program = {.len = sizeof(filter) / sizeof(filter[0]),
                                       .filter = (struct sock_filter *)(uintptr_t)filter};
    long result;

    if (MACHINE == 0 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
        return MACHINE == 0 ? -ENOSYS : -errno;
    result = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program);
    /* a result above 0 is the ID of a thread that could not take this filter, because it has
     * another one */
    return result > 0 ? -EBUSY : result < 0 ? -errno : 0;
}
