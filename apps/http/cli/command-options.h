/* SPDX-License-Identifier: MIT
 *
 * What: the values that getopt_long returns for the options of sxe-http that have no letter. Place:
 * used only by the files of the command line, cli/command*.c.
 */
#ifndef LOAD_COMMAND_OPTIONS_H
#define LOAD_COMMAND_OPTIONS_H

#include "command-line.h"

enum {
    UNIX = COMMAND_LINE_LONG,
    SOURCE,
    PROXY,
    REQUESTS,
    SHARD,
    WARMUP,
    DRAIN,
    STAGES,
    OPEN,
    ARRIVALS,
    START_AT,
    THINK,
    DEADLINE,
    PIPELINE,
    CONNECT_RAMP,
    TIMEOUT,
    ABORT,
    SEED,
    PROBE,
    REQUEST_FILE,
    REPLAY,
    SPEED,
    SCENARIO,
    HTTP_1_0,
    EXPECT_STATUS,
    EXPECT_HEADER,
    EXPECT_BODY,
    THRESHOLD,
    FIND,
    TRIALS,
    UNTIL_CI,
    SERVER_CMD,
    BASELINE,
    BASELINE_CMD,
    MIN_EFFECT,
    AA,
    JSON,
    CSV,
    CANDLES,
    HGRM,
    HDR,
    HTML,
    JUNIT,
    MARKDOWN,
    ANNOTATE,
    JSONL,
    METRICS,
    FANOUT,
    SELFTEST,
    TLS_CA,
    TLS_CERT,
    TLS_KEY,
    TLS_NAME,
    TLS_RESUME,
    INSECURE
};

#endif
