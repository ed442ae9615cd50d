/* SPDX-License-Identifier: MIT
 *
 * Loading a result file, and checking its schema.
 */
#include "result-file.h"

#include <errno.h>
#include <string.h>

#include "output.h"
#include "result-check.h"

void
load_result_file_print(FILE *out, const char *text)
{
    for (; *text != '\0'; text++)
        putc((unsigned char)*text < ' ' || *text == 0x7f ? '?' : *text, out);
}

void
load_result_file_refuse(const char *path, const char *problem, FILE *err)
{
    fprintf(err, "sxe-http: ");
    load_result_file_print(err, path);
    fprintf(err, ": ");
    load_result_file_print(err, problem);
    fprintf(err, "; give a file that sxe-http --json has written\n");
}

static void
refuse_json(const char *path, const json_error_t *error, FILE *err)
{
    char problem[JSON_ERROR_TEXT_LENGTH + 32];

    snprintf(problem, sizeof(problem), "line %d: %s", error->line, error->text);
    load_result_file_refuse(path, problem, err);
}

static bool
has_our_schema(const char *path, const json_t *root, FILE *err)
{
    const json_t *schema = json_object_get(root, "sxe_http");
    double version = json_number_value(schema);
    char problem[80] = "is no result of sxe-http";

    if (json_is_number(schema) && version >= LOAD_JSON_SCHEMA && version <= LOAD_JSON_SCHEMA)
        return true;
    if (json_is_number(schema))
        snprintf(problem, sizeof(problem), "has version %.9g of the schema, which is %d here",
                 version, LOAD_JSON_SCHEMA);
    load_result_file_refuse(path, problem, err);
    return false;
}

static bool
fits_together(const char *path, const json_t *root, FILE *err)
{
    char problem[200];

    if (load_result_check_file(root, problem, sizeof(problem)))
        return true;
    load_result_file_refuse(path, problem, err);
    return false;
}

/* Read the open file. NULL after a message on err: it is no result. */
static json_t *
read_result(const char *path, FILE *file, FILE *err)
{
    json_error_t error;
    json_t *root = json_loadf(file, LOAD_RESULT_FILE_FLAGS, &error);

    if (ferror(file))
        load_result_file_refuse(path, strerror(errno), err);
    else if (root == NULL)
        refuse_json(path, &error, err);
    else if (has_our_schema(path, root, err) && fits_together(path, root, err))
        return root;
    json_decref(root);
    return NULL;
}

json_t *
load_result_file_load(const char *path, FILE *err)
{
    FILE *file = fopen(path, "re");
    json_t *root;

    if (file == NULL) {
        load_result_file_refuse(path, strerror(errno), err);
        return NULL;
    }
    root = read_result(path, file, err);
    fclose(file);
    return root;
}
