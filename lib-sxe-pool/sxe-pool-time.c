/* SPDX-License-Identifier: MIT
 *
 * A pool's time is the machine's monotonic clock, continued over reboots: by as much as the wall
 * clock has gone on. A process in a time namespace reads another monotonic clock than the others,
 * and its stamps would delay the timeouts of all processes. So the difference between the clocks,
 * which the kernel reports, is subtracted.
 */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "sxe-pool-opening-private.h"

#define YEARS_50 (UINT64_C(50) * 365 * 86400 * SXE_NS_PER_SECOND)
#define OFFSETS  "/proc/self/timens_offsets" /* has lines like "monotonic seconds nanoseconds" */

uint64_t
sxe__pool_wall_ns(void)
{
    struct timespec now = {0};

    clock_gettime(CLOCK_REALTIME, &now);
    return (uint64_t)now.tv_sec * SXE_NS_PER_SECOND + (uint64_t)now.tv_nsec;
}

/* A wall clock that went on by more than 50 years is not used: it was wrong then, or is wrong
 * now. */
uint64_t
sxe__pool_carry_time_over(const struct sxe__pool_sharing *sharing, uint64_t youngest)
{
    const uint64_t monotonic = sxe_time_ns();
    const uint64_t by_wall = sxe__pool_wall_ns() - sharing->head->wall_offset_ns;
    const uint64_t now = by_wall < YEARS_50 ? by_wall : monotonic;

    return (now > youngest ? now : youngest) - monotonic;
}

uint64_t
sxe__pool_catch_up(const struct sxe__pool_sharing *sharing, uint64_t youngest)
{
    const uint64_t now = sxe_time_ns() + sharing->time_offset_ns;

    return sharing->time_offset_ns + (youngest > now ? youngest - now : 0);
}

uint64_t
sxe__pool_parse_namespace(const char *text)
{
    static const char name[] = "monotonic";
    char *end;
    long long seconds;

    if (strncmp(text, name, sizeof(name) - 1) != 0)
        return 0;
    seconds = strtoll(text + sizeof(name) - 1, &end, 10);
    return (uint64_t)seconds * SXE_NS_PER_SECOND + (uint64_t)strtoll(end, NULL, 10);
}

uint64_t
sxe__pool_namespace_ns(void)
{
    char text[128] = "";
    const int fd = open(OFFSETS, O_RDONLY | O_CLOEXEC);

    if (fd != -1 && read(fd, text, sizeof(text) - 1) < 0)
        text[0] = '\0';
    if (fd != -1)
        close(fd);
    return sxe__pool_parse_namespace(text);
}
