# SPDX-License-Identifier: MIT
# Sourced by the test scripts: check, and the closing line.
passed=0
failed=0
check() { # check "a sentence" command...
    sentence=$1
    shift
    if "$@" >"${TMPDIR:-/tmp}/check.$$" 2>&1; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        echo "FAILED: $sentence"
        echo "        $*"
        sed 's/^/        /' "${TMPDIR:-/tmp}/check.$$"
    fi
    rm -f "${TMPDIR:-/tmp}/check.$$"
}
finish() { # finish NAME
    echo "$1: $passed passed, $failed failed"
    [ "$failed" -eq 0 ]
}
