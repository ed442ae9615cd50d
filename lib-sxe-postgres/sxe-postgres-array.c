/* SPDX-License-Identifier: MIT
 *
 * The scanner of arrays in PostgreSQL's text form (manual, 8.15.6): {1,NULL,"a \"b\""}, lists in
 * lists, and the bounds before them, [0:1]={a,b}, which are passed over.
 */
#include "sxe-postgres-array-private.h"

#include <string.h>
#include <strings.h>

static void
skip_bounds(struct sxe__postgres_array *array)
{
    const char *equals;

    if (array->text == array->end || *array->text != '[')
        return;
    equals = memchr(array->text, '=', (size_t)(array->end - array->text));
    if (equals != NULL)
        array->text = equals + 1;
}

/* Read a quoted element, after its opening quote. */
static enum sxe__postgres_token
scan_quoted(struct sxe__postgres_array *array)
{
    for (; array->text < array->end; array->text++) {
        if (*array->text == '"') {
            array->text++;
            array->room[array->length] = '\0';
            return SXE__POSTGRES_ELEMENT;
        }
        if (*array->text == '\\' && ++array->text == array->end)
            return SXE__POSTGRES_BAD;
        array->room[array->length++] = *array->text;
    }
    return SXE__POSTGRES_BAD;
}

static enum sxe__postgres_token
scan_plain(struct sxe__postgres_array *array)
{
    while (array->text < array->end && strchr(",{}\"\\", *array->text) == NULL)
        array->room[array->length++] = *array->text++;
    array->room[array->length] = '\0';
    if (array->length == 0)
        return SXE__POSTGRES_BAD;
    return strcasecmp(array->room, "NULL") == 0 ? SXE__POSTGRES_NULL : SXE__POSTGRES_ELEMENT;
}

static enum sxe__postgres_token
scan_element(struct sxe__postgres_array *array)
{
    array->length = 0;
    array->is_after = true;
    if (*array->text != '"')
        return scan_plain(array);
    array->text++;
    return scan_quoted(array);
}

static enum sxe__postgres_token
open_list(struct sxe__postgres_array *array)
{
    if (array->is_after || array->depth == SXE__POSTGRES_DEPTH)
        return SXE__POSTGRES_BAD;
    array->text++;
    array->depth++;
    array->is_begun = true;
    return SXE__POSTGRES_OPEN;
}

static enum sxe__postgres_token
close_list(struct sxe__postgres_array *array)
{
    array->text++;
    array->depth--;
    array->is_after = true;
    return SXE__POSTGRES_CLOSE;
}

enum sxe__postgres_token
sxe__postgres_array_next(struct sxe__postgres_array *array)
{
    if (!array->is_begun)
        skip_bounds(array);
    else if (array->depth == 0)
        return array->text == array->end ? SXE__POSTGRES_END : SXE__POSTGRES_BAD;
    if (array->text == array->end)
        return SXE__POSTGRES_BAD;
    if (*array->text == '{')
        return open_list(array);
    if (array->depth == 0)
        return SXE__POSTGRES_BAD;
    if (*array->text == '}')
        return close_list(array);
    if (!array->is_after)
        return scan_element(array);
    if (*array->text != ',' || ++array->text == array->end || *array->text == '}')
        return SXE__POSTGRES_BAD;
    array->is_after = false;
    return *array->text == '{' ? open_list(array) : scan_element(array);
}
