/* SPDX-License-Identifier: MIT
 *
 * Writes a test case for each check, in the XML of JUnit, with only the elements and attributes
 * that Jenkins, GitLab and GitHub's actions all understand. A missed threshold is a failure, a run
 * without a result is an error, and a check that cannot be judged is skipped.
 */
#include <string.h>

#include "checks.h"
#include "output.h"
#include "sxe-utf8.h"

struct junit {
    FILE *out;
    double seconds; /* how long the run took, which is written in its first case */
    unsigned cases[LOAD_CHECK_SKIPPED + 1];
};

/* Whether XML allows the character. If XML does not, a reference (&#...;) to it is not allowed
 * either. */
static bool
is_character(uint32_t character)
{
    return (character >= ' ' || character == '\n' || character == '\t') && character != 0xfffe &&
           character != 0xffff;
}

static void
write_xml_text(FILE *out, const char *string)
{
    const unsigned char *text = (const unsigned char *)string;

    while (*text != '\0') {
        uint32_t character;
        size_t length = sxe_utf8_decode(&character, text, 4);

        if (length == 0 || !is_character(character))
            fputs("&#xfffd;", out);
        else if (strchr("\"&'<>\n\t", *text) != NULL)
            fprintf(out, "&#%u;", (unsigned)character);
        else
            fwrite(text, 1, length, out);
        text += length > 0 ? length : 1;
    }
}

static void
write_attribute(FILE *out, const char *name, const char *value)
{
    fprintf(out, " %s=\"", name);
    write_xml_text(out, value);
    putc('"', out);
}

static void
write_element(FILE *out, const char *name, const char *text)
{
    fprintf(out, "<%s>", name);
    write_xml_text(out, text);
    fprintf(out, "</%s>", name);
}

/* Write an element for a check that did not pass. It has the check's text twice: as its attribute
 * "message", and as its content, which may have several lines. */
static void
write_outcome(FILE *out, const char *element, const struct load_check *check)
{
    fprintf(out, "<%s", element);
    write_attribute(out, "message", check->text);
    if (check->outcome != LOAD_CHECK_SKIPPED)
        write_attribute(out, "type", check->group);
    putc('>', out);
    write_xml_text(out, check->text);
    fprintf(out, "</%s>", element);
}

static void
write_case(void *user, const struct load_check *check)
{
    static const char *const elements[] = {
        [LOAD_CHECK_MISSED] = "failure",
        [LOAD_CHECK_WRONG] = "error",
        [LOAD_CHECK_SKIPPED] = "skipped",
    };
    struct junit *junit = user;

    fputs("    <testcase", junit->out);
    write_attribute(junit->out, "classname", "sxe-http");
    fputs(" name=\"", junit->out);
    write_xml_text(junit->out, check->group);
    fputs(": ", junit->out);
    write_xml_text(junit->out, check->name);
    fprintf(junit->out, "\" time=\"%.3f\">", junit->seconds);
    junit->seconds = 0;
    if (check->outcome == LOAD_CHECK_PASSED)
        write_element(junit->out, "system-out", check->text);
    else
        write_outcome(junit->out, elements[check->outcome], check);
    fputs("</testcase>\n", junit->out);
}

static void
count_case(void *user, const struct load_check *check)
{
    struct junit *junit = user;

    junit->cases[check->outcome]++;
}

static void
write_junit_counts(const struct junit *junit)
{
    const unsigned *cases = junit->cases;

    fprintf(junit->out, " tests=\"%u\" failures=\"%u\" errors=\"%u\" skipped=\"%u\" time=\"%.3f\"",
            cases[LOAD_CHECK_PASSED] + cases[LOAD_CHECK_MISSED] + cases[LOAD_CHECK_WRONG] +
                cases[LOAD_CHECK_SKIPPED],
            cases[LOAD_CHECK_MISSED], cases[LOAD_CHECK_WRONG], cases[LOAD_CHECK_SKIPPED],
            junit->seconds);
}

static void
write_properties(const struct junit *junit, const struct load_run *run)
{
    fputs("    <properties>\n", junit->out);
    for (unsigned i = 0; i < run->fingerprint.number; i++) {
        fputs("      <property", junit->out);
        write_attribute(junit->out, "name", run->fingerprint.facts[i].name);
        write_attribute(junit->out, "value", run->fingerprint.facts[i].value);
        fputs("/>\n", junit->out);
    }
    fputs("    </properties>\n", junit->out);
}

int
load_output_junit(FILE *out, const struct load_run *run)
{
    struct junit junit = {.out = out, .seconds = (double)run->total->elapsed_ns / 1e9};

    load_checks_each(run, count_case, &junit);
    fputs("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"sxe-http\"", out);
    write_junit_counts(&junit);
    fputs(">\n  <testsuite", out);
    write_attribute(out, "name", run->plan->what);
    write_junit_counts(&junit);
    /* JUnit's schemas allow no time zone. The time is UTC, so cut off its "Z". */
    fprintf(out, " timestamp=\"%.19s\">\n", run->started_at);
    write_properties(&junit, run);
    load_checks_each(run, write_case, &junit);
    fputs("  </testsuite>\n</testsuites>\n", out);
    return load_output_finish(out);
}
