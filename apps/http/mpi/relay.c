/* SPDX-License-Identifier: MIT
 *
 * Carrying frames between a process's channels and other ranks, and measuring clocks.
 */
#include "relay.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sxe-time.h"

/* after a frame: for how long to ask MPI for messages every millisecond */
#define BRISK_NS (20 * SXE_NS_PER_MS)
/* after a PING: for how long to ask MPI without sleeping, because more PINGs will follow */
#define SPIN_NS (2 * SXE_NS_PER_MS)
#define ROUNDS  20 /* how many PINGs are used to measure a clock */

uint64_t load_relay_end_ns = 3 * SXE_NS_PER_SECOND;
uint64_t load_relay_pong_ns = 200 * SXE_NS_PER_MS;

/* A frame that cannot be passed on yet. There is one for each direction. */
struct held {
    size_t length; /* how many bytes the frame has; 0: no frame is held */
    struct load_frame frame;
};

struct peer {
    unsigned rank;
    int channel;      /* the channel to the peer's envoy; -1: there is none */
    bool needs_clock; /* whether the peer's clock is to be measured */
    bool has_ended;
    struct held to_rank;
    struct held to_channel;
};

struct relay {
    struct load_link *link;
    int engine; /* the channel to the engine */
    bool is_over;
    bool has_moved;    /* whether a frame was read or passed on in this turn */
    uint64_t brisk_ns; /* until when to ask MPI for messages every millisecond */
    uint64_t spin_ns;  /* until when to ask MPI without sleeping */
    uint32_t rounds;   /* how many PINGs were sent */
    uint32_t ponged;   /* the number of the last PONG */
    uint64_t pong_ns;  /* the time in the last PONG */
    unsigned peers_number;
    struct peer peers[LOAD_RANKS_MAX];
};

static bool
send_head(struct relay *relay, unsigned to, enum load_frame_type type, uint32_t value)
{
    struct load_frame frame = {.type = type, .value = value, .u.time_ns = sxe_time_ns()};

    return relay->link->send(relay->link, to, &frame, LOAD_FRAME_HEAD);
}

/* ---- From another rank ---- */

static void
flush_to_channel(struct relay *relay, struct peer *peer)
{
    struct held *held = &peer->to_channel;

    if (held->length == 0)
        return;
    if (send(peer->channel, &held->frame, held->length, MSG_DONTWAIT | MSG_NOSIGNAL) < 0 &&
        errno == EAGAIN)
        return;
    held->length = 0;
    relay->has_moved = true;
}

static void
take_peer_message(struct relay *relay, struct peer *peer)
{
    const struct load_frame *frame = &peer->to_channel.frame;
    size_t length = peer->to_channel.length;

    relay->has_moved = true;
    peer->to_channel.length = 0;
    switch (frame->type) {
    case LOAD_FRAME_PING:
        send_head(relay, peer->rank, LOAD_FRAME_PONG, frame->value);
        relay->spin_ns = sxe_time_ns() + SPIN_NS;
        break;
    case LOAD_FRAME_PONG:
        relay->ponged = frame->value;
        relay->pong_ns = frame->u.time_ns;
        break;
    case LOAD_FRAME_END:
        relay->is_over = true;
        break;
    case LOAD_FRAME_BYE:
        peer->has_ended = true;
        break;
    default:
        peer->to_channel.length = length;
        flush_to_channel(relay, peer);
    }
}

static void
receive_from_peer(struct relay *relay, struct peer *peer)
{
    struct held *held = &peer->to_channel;

    flush_to_channel(relay, peer);
    if (held->length > 0)
        return;
    held->length = relay->link->receive(relay->link, peer->rank, &held->frame, sizeof(held->frame));
    if (held->length > 0)
        take_peer_message(relay, peer);
}

/* ---- The clock of a rank ---- */

/* Send one PING and wait for its PONG. False: no answer came. */
static bool
ping_peer(struct relay *relay, struct peer *peer, struct load_clock *clock)
{
    uint64_t sent_ns = sxe_time_ns();
    uint64_t got_ns = sent_ns;
    uint64_t half_ns;

    if (send_head(relay, peer->rank, LOAD_FRAME_PING, ++relay->rounds))
        while (relay->ponged != relay->rounds && got_ns < sent_ns + load_relay_pong_ns) {
            receive_from_peer(relay, peer);
            got_ns = sxe_time_ns();
        }
    half_ns = (got_ns - sent_ns) / 2 + 1;
    if (relay->ponged != relay->rounds)
        return false;
    if (half_ns < clock->error_ns)
        *clock = (struct load_clock){(int64_t)(relay->pong_ns - sent_ns - half_ns), half_ns};
    return true;
}

static void
measure_clock(struct relay *relay, struct peer *peer)
{
    struct load_frame frame = {.type = LOAD_FRAME_CLOCK, .clock.error_ns = UINT64_MAX};

    for (unsigned i = 0; i < ROUNDS && ping_peer(relay, peer, &frame.clock); i++)
        ;
    /* If no answer came, try again in the next turn, until the envoy says that the rank is lost. */
    peer->needs_clock = frame.clock.error_ns == UINT64_MAX;
    if (!peer->needs_clock)
        load_frame_send(peer->channel, &frame, 0);
}

/* ---- From a channel ---- */

static void
flush_to_rank(struct relay *relay, struct peer *peer)
{
    struct held *held = &peer->to_rank;

    if (held->length == 0 ||
        !relay->link->send(relay->link, peer->rank, &held->frame, held->length))
        return;
    held->length = 0;
    relay->has_moved = true;
}

/* The channel is closed, because the agent has died: send GONE to rank 0 in its place. */
static void
lose_agent(struct peer *peer)
{
    static const char text[] = "has lost its agent, the process that watches its worker";

    peer->to_rank.frame = (struct load_frame){.type = LOAD_FRAME_GONE};
    memcpy(peer->to_rank.frame.bytes, text, sizeof(text));
    peer->to_rank.length = LOAD_FRAME_HEAD + sizeof(text);
    close(peer->channel);
    peer->channel = -1;
}

static void
read_channel(struct relay *relay, struct peer *peer)
{
    struct held *held = &peer->to_rank;
    int bytes;

    flush_to_rank(relay, peer);
    if (held->length > 0 || peer->channel < 0)
        return;
    bytes = load_frame_receive(peer->channel, &held->frame);
    if (bytes == -1)
        return;
    relay->has_moved = true;
    if (bytes < 0) {
        lose_agent(peer);
    } else if (held->frame.type == LOAD_FRAME_CLOCK) {
        peer->needs_clock = true;
    } else {
        held->length = LOAD_FRAME_HEAD + (size_t)bytes;
    }
    flush_to_rank(relay, peer);
}

/* ---- The relay's loop ---- */

/* At rank 0: receive the channel of the next rank from the engine. Rank 0 has a peer for each other
 * rank. Every other rank has one peer, which is rank 0, and whose channel leads to the engine. */
static void
take_channel(struct relay *relay)
{
    struct peer *peer = &relay->peers[relay->peers_number];
    int channel = load_frame_receive_descriptor(relay->engine);

    if (channel < 0) {
        relay->is_over = true;
        return;
    }
    *peer = (struct peer){.rank = ++relay->peers_number, .channel = channel};
}

static void
take_signal(const struct relay *relay, int signals, pid_t engine)
{
    struct signalfd_siginfo info;

    if (read(signals, &info, sizeof(info)) == (ssize_t)sizeof(info) && relay->link->rank == 0)
        kill(engine, (int)info.ssi_signo);
}

static int
relay_wait_ms(const struct relay *relay, uint64_t now_ns)
{
    if (relay->has_moved || now_ns < relay->spin_ns)
        return 0;
    return now_ns < relay->brisk_ns ? 1 : LOAD_RELAY_IDLE_MS;
}

static void
run_relay_turn(struct relay *relay, int signals, pid_t engine)
{
    uint64_t now_ns = sxe_time_ns();
    struct pollfd fds[2 + LOAD_RANKS_MAX] = {
        {signals, POLLIN, 0}, {relay->link->rank == 0 ? relay->engine : -1, POLLIN, 0}};

    if (relay->has_moved)
        relay->brisk_ns = now_ns + BRISK_NS;
    for (unsigned i = 0; i < relay->peers_number; i++) {
        const struct peer *peer = &relay->peers[i];

        fds[2 + i] = (struct pollfd){peer->to_rank.length > 0 ? -1 : peer->channel, POLLIN, 0};
    }
    poll(fds, 2 + relay->peers_number, relay_wait_ms(relay, now_ns));
    relay->has_moved = false;
    if (fds[0].revents != 0)
        take_signal(relay, signals, engine);
    if (fds[1].revents != 0)
        take_channel(relay);
    for (unsigned i = 0; i < relay->peers_number; i++) {
        receive_from_peer(relay, &relay->peers[i]);
        read_channel(relay, &relay->peers[i]);
        if (relay->peers[i].needs_clock)
            measure_clock(relay, &relay->peers[i]);
    }
}

/* Send a frame without content. Try until the link accepts it. */
static void
say_to_peer(struct relay *relay, unsigned rank, enum load_frame_type type, uint64_t until_ns)
{
    while (!send_head(relay, rank, type, 0) && sxe_time_ns() < until_ns)
        poll(NULL, 0, 1);
}

/* Send END to all other ranks, and wait for their BYE. False: some did not answer. */
static bool
end_others(struct relay *relay)
{
    uint64_t until_ns = sxe_time_ns() + load_relay_end_ns;
    unsigned ended = 0;

    for (unsigned rank = 1; rank < relay->link->ranks; rank++)
        say_to_peer(relay, rank, LOAD_FRAME_END, until_ns);
    /* The engine may have ended before it sent all channels: add the peers of the other ranks. */
    while (relay->peers_number < relay->link->ranks - 1) {
        relay->peers[relay->peers_number] =
            (struct peer){.rank = relay->peers_number + 1, .channel = -1};
        relay->peers_number++;
    }
    do {
        ended = 0;
        for (unsigned i = 0; i < relay->peers_number; i++) {
            relay->peers[i].to_channel.length = 0;
            receive_from_peer(relay, &relay->peers[i]);
            ended += relay->peers[i].has_ended;
        }
        poll(NULL, 0, ended < relay->peers_number);
    } while (ended < relay->peers_number && sxe_time_ns() < until_ns);
    return ended == relay->peers_number;
}

struct load_relay_end
load_relay_run(struct load_link *link, int channel, pid_t engine, int signals)
{
    static struct relay relay;
    struct load_relay_end end = {0};

    /* memset is used because assigning a compound literal would need a large object on the
     * stack. */
    memset(&relay, 0, sizeof(relay));
    relay.link = link;
    relay.engine = channel;
    if (link->rank > 0) {
        relay.peers_number = 1;
        relay.peers[0] = (struct peer){.channel = channel};
    }
    while (!relay.is_over)
        run_relay_turn(&relay, signals, engine);
    /* Close our ends of the channels: when the engine sees that, it ends. */
    for (unsigned i = 0; i < relay.peers_number; i++)
        if (relay.peers[i].channel >= 0)
            close(relay.peers[i].channel);
    waitpid(engine, &end.status, 0);
    if (link->rank == 0)
        end.is_clean = end_others(&relay);
    else
        say_to_peer(&relay, 0, LOAD_FRAME_BYE, sxe_time_ns() + load_relay_end_ns);
    return end;
}
