# SPDX-License-Identifier: MIT
# Sourced by the test scripts: check, and the closing line.
passed=0
failed=0
skipped=0
skip() { # skip "what, because why"
    skipped=$((skipped + 1))
    echo "skipped: $1"
}
sum() { # sum: the numbers, as all tests end with them
    echo "$passed passed, $failed failed$([ "$skipped" -eq 0 ] || echo ", $skipped skipped")"
}
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
    echo "$1: $(sum)"
    [ "$failed" -eq 0 ]
}
