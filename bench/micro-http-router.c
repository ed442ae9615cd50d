/* SPDX-License-Identifier: MIT
 *
 * Measures how many ns it takes to find the route for a path, with 1 route, and with 100 routes
 * that are like the interface of a code hosting service. After `make`:
 *
 *     gcc -O2 -DSXE_LOG_NO_2010 -Ilib-sxe-log -Ilib-sxe-http bench/micro-http-router.c \
 *         build/release/libsxe.a
 *
 * The best of RUNS runs is shown.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sxe-http-router.h"
#include "sxe-time.h"

enum { RUNS = 5, TIMES = 1000000 };

static const char *const routes[] = {
    "GET /",
    "GET /authorizations",
    "POST /authorizations",
    "GET,DELETE /authorizations/{id}",
    "GET /applications/{client}/tokens/{token}",
    "DELETE /applications/{client}/tokens",
    "DELETE /applications/{client}/tokens/{token}",
    "GET /emojis",
    "GET /events",
    "GET /feeds",
    "GET,POST /gists",
    "GET /gists/public",
    "GET /gists/starred",
    "GET,PATCH,DELETE /gists/{id}",
    "GET,PUT,DELETE /gists/{id}/star",
    "POST /gists/{id}/forks",
    "GET /gitignore/templates",
    "GET /gitignore/templates/{name}",
    "GET /issues",
    "GET /legacy/issues/search/{owner}/{repository}/{state}/{keyword}",
    "GET /legacy/repos/search/{keyword}",
    "GET /legacy/user/search/{keyword}",
    "POST /markdown",
    "POST /markdown/raw",
    "GET /meta",
    "GET /networks/{owner}/{repo}/events",
    "GET,PUT /notifications",
    "GET,PATCH /notifications/threads/{id}",
    "GET,PUT,DELETE /notifications/threads/{id}/subscription",
    "GET,PATCH /orgs/{org}",
    "GET /orgs/{org}/events",
    "GET /orgs/{org}/issues",
    "GET /orgs/{org}/members",
    "GET,DELETE /orgs/{org}/members/{user}",
    "GET /orgs/{org}/public_members",
    "GET,PUT,DELETE /orgs/{org}/public_members/{user}",
    "GET,POST /orgs/{org}/repos",
    "GET,POST /orgs/{org}/teams",
    "GET /rate_limit",
    "GET,PATCH,DELETE /repos/{owner}/{repo}",
    "GET /repos/{owner}/{repo}/assignees",
    "GET /repos/{owner}/{repo}/assignees/{assignee}",
    "GET /repos/{owner}/{repo}/branches",
    "GET /repos/{owner}/{repo}/branches/{branch}",
    "GET /repos/{owner}/{repo}/collaborators",
    "GET,PUT,DELETE /repos/{owner}/{repo}/collaborators/{user}",
    "GET /repos/{owner}/{repo}/comments",
    "GET,PATCH,DELETE /repos/{owner}/{repo}/comments/{id}",
    "GET /repos/{owner}/{repo}/commits",
    "GET /repos/{owner}/{repo}/commits/{sha}",
    "GET,POST /repos/{owner}/{repo}/commits/{sha}/comments",
    "GET,PUT,DELETE /repos/{owner}/{repo}/contents/{path...}",
    "GET /repos/{owner}/{repo}/contributors",
    "GET,POST /repos/{owner}/{repo}/downloads",
    "GET,DELETE /repos/{owner}/{repo}/downloads/{id}",
    "GET /repos/{owner}/{repo}/events",
    "GET,POST /repos/{owner}/{repo}/forks",
    "POST /repos/{owner}/{repo}/git/blobs",
    "GET /repos/{owner}/{repo}/git/blobs/{sha}",
    "POST /repos/{owner}/{repo}/git/commits",
    "GET /repos/{owner}/{repo}/git/commits/{sha}",
    "GET,POST /repos/{owner}/{repo}/git/refs",
    "GET,PATCH,DELETE /repos/{owner}/{repo}/git/refs/{ref...}",
    "POST /repos/{owner}/{repo}/git/tags",
    "GET /repos/{owner}/{repo}/git/tags/{sha}",
    "GET,POST /repos/{owner}/{repo}/hooks",
    "GET,PATCH,DELETE /repos/{owner}/{repo}/hooks/{id}",
    "POST /repos/{owner}/{repo}/hooks/{id}/tests",
    "GET,POST /repos/{owner}/{repo}/issues",
    "GET,PATCH /repos/{owner}/{repo}/issues/{number}",
    "GET,POST /repos/{owner}/{repo}/issues/{number}/comments",
    "GET,POST,DELETE /repos/{owner}/{repo}/issues/{number}/labels",
    "DELETE /repos/{owner}/{repo}/issues/{number}/labels/{name}",
    "GET,POST /repos/{owner}/{repo}/keys",
    "GET,POST /repos/{owner}/{repo}/labels",
    "GET /repos/{owner}/{repo}/languages",
    "POST /repos/{owner}/{repo}/merges",
    "GET,POST /repos/{owner}/{repo}/milestones",
    "GET,POST /repos/{owner}/{repo}/pulls",
    "GET,PATCH /repos/{owner}/{repo}/pulls/{number}",
    "GET /repos/{owner}/{repo}/pulls/{number}/files",
    "GET,PUT /repos/{owner}/{repo}/pulls/{number}/merge",
    "GET /repos/{owner}/{repo}/readme",
    "GET,POST /repos/{owner}/{repo}/releases",
    "GET /repos/{owner}/{repo}/releases/{id}",
    "GET /repos/{owner}/{repo}/stargazers",
    "GET /repos/{owner}/{repo}/{archive}.tar.gz",
    "GET /repositories",
    "GET /search/code",
    "GET /search/issues",
    "GET /search/repositories",
    "GET /search/users",
    "GET,PATCH,DELETE /teams/{id}",
    "GET,PUT,DELETE /teams/{id}/members/{user}",
    "GET,PATCH /user",
    "GET,POST,DELETE /user/emails",
    "GET,POST /user/repos",
    "GET /users",
    "GET /users/{user}",
    "GET /users/{user}/received_events/public",
};

static const struct {
    const char *what;
    const char *path;
} paths[] = {
    {"the root", "/"},
    {"literals only", "/user/repos"},
    {"literals, among many", "/search/repositories"},
    {"one parameter", "/users/octocat"},
    {"three, deep in the tree", "/repos/octocat/hello-world/issues/1347/comments"},
    {"a tail", "/repos/octocat/hello-world/contents/src/main/java/Hello.java"},
    {"a literal that is a dead end", "/repos/octocat/hello-world/readings.tar.gz"},
    {"not found", "/repos/octocat/hello-world/nothing"},
};

/* How many ns it takes to find the route for a path. */
static double
measure(const struct sxe_http_router *router, const char *path)
{
    const struct sxe_span span = {path, strlen(path)};
    const struct sxe_span name = {"GET", 3};
    uint64_t best = UINT64_MAX;

    for (unsigned run = 0; run < RUNS; run++) {
        const uint64_t began = sxe_time_ns();
        struct sxe_http_match match;

        for (unsigned i = 0; i < TIMES; i++) {
            if (sxe_http_router_find(router, SXE_HTTP_GET, name, span, &match) ==
                SXE_HTTP_ROUTE_OPTIONS)
                abort();
            __asm__ volatile("" : : "r"(&match) : "memory");
        }
        const uint64_t taken = sxe_time_ns() - began;
        best = taken < best ? taken : best;
    }
    return (double)best / TIMES;
}

static enum sxe_http_verdict
handle(struct sxe_http_request *request, struct sxe_http_response *response)
{
    SXE_UNUSED_PARAMETER(request);
    SXE_UNUSED_PARAMETER(response);
    return SXE_HTTP_DONE;
}

/* Make a router with the first `number` routes. */
static struct sxe_http_router *
make_router(unsigned number)
{
    struct sxe_http_router *router = sxe_http_router_new();

    for (unsigned i = 0; router != NULL && i < number; i++) {
        const char *pattern = strchr(routes[i], ' ') + 1;
        char methods[64];

        snprintf(methods, sizeof(methods), "%.*s", (int)(pattern - 1 - routes[i]), routes[i]);
        if (sxe_http_router_add(router, methods, pattern, handle, NULL) < 0) {
            fprintf(stderr, "%s\n", sxe_http_router_error(router));
            sxe_http_router_delete(router);
            return NULL;
        }
    }
    return router;
}

int
main(void)
{
    const unsigned number = sizeof(routes) / sizeof(routes[0]);
    struct sxe_http_router *one = make_router(1);
    struct sxe_http_router *all = make_router(number);

    if (one == NULL || all == NULL)
        return EXIT_FAILURE;
    printf("ns to find a route among     1  %4u\n", number);
    for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++)
        printf("%28s %5.1f %5.1f\n", paths[i].what, measure(one, paths[i].path),
               measure(all, paths[i].path));
    sxe_http_router_delete(one);
    sxe_http_router_delete(all);
    return EXIT_SUCCESS;
}
