/* SPDX-License-Identifier: MIT */
#include "result-file.h"

#include "output.h"

void
http_result_file_print(FILE *out, const char *text)
{
    for (; *text != '\0'; text++)
        putc((unsigned char)*text < ' ' || *text == 0x7f ? '?' : *text, out);
}

void
http_result_file_refuse(const char *path, const char *problem, FILE *err)
{
    fprintf(err, "sxe-http: ");
    http_result_file_print(err, path);
    fprintf(err, ": ");
    http_result_file_print(err, problem);
    fprintf(err, "; give a file that sxe-http --json has written\n");
}

static void
refuse_json(const char *path, const json_error_t *error, FILE *err)
{
    char problem[JSON_ERROR_TEXT_LENGTH + 32];

    if (error->line > 0)
        snprintf(problem, sizeof(problem), "line %d: %s", error->line, error->text);
    else
        snprintf(problem, sizeof(problem), "%s", error->text);
    http_result_file_refuse(path, problem, err);
}

static bool
has_our_schema(const char *path, const json_t *root, FILE *err)
{
    const json_t *schema = json_object_get(root, "sxe_http");
    double version = json_number_value(schema);
    char problem[80] = "is no result of sxe-http";

    if (json_is_number(schema) && version >= HTTP_JSON_SCHEMA && version <= HTTP_JSON_SCHEMA)
        return true;
    if (json_is_number(schema))
        snprintf(problem, sizeof(problem), "has version %.9g of the schema, which is %d here",
                 version, HTTP_JSON_SCHEMA);
    http_result_file_refuse(path, problem, err);
    return false;
}

json_t *
http_result_file_load(const char *path, FILE *err)
{
    json_error_t error;
    json_t *root = json_load_file(path, HTTP_RESULT_FILE_FLAGS, &error);

    if (root == NULL) {
        refuse_json(path, &error, err);
    } else if (!has_our_schema(path, root, err)) {
        json_decref(root);
        root = NULL;
    }
    return root;
}
