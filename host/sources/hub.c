// One GET with libcurl. Redirects are followed here and not by libcurl: which versions of it keep a
// token from other hosts differs (7.58 hosts, 7.83 ports), and the library is whatever the machine
// has. Where an address leads is libcurl's word: what it parsed is compared and then requested. The
// token goes to the endpoint and stays on a redirect's way for as long as scheme, host and port do.
// A libcurl without a parser (before 7.62) sends it to no redirect at all.
#include "host/sources/hub.h"

#include <curl/curl.h>
#include <string.h>
#include <time.h>

#include "core/base/buf.h"
#include "core/base/units.h"
#include "host/system/library.h"

enum { REDIRECTS_MAX = 5, TEXT_MAX = 100 };

#define BODY_MAX_BYTES ((ptrdiff_t)(16 * MIB))

// CURLOPT_PROTOCOLS, which newer headers mark as deprecated and older libraries need.
#define OPTION_PROTOCOLS ((CURLoption)(CURLOPTTYPE_LONG + 181))

struct api {
    CURLcode (*global_init)(long flags);
    void (*global_cleanup)(void);
    CURL *(*easy_init)(void);
    CURLcode (*set)(CURL *curl, CURLoption option, ...);
    CURLcode (*perform)(CURL *curl);
    CURLcode (*info)(CURL *curl, CURLINFO info, ...);
    const char *(*error_text)(CURLcode code);
    void (*easy_cleanup)(CURL *curl);
    struct curl_slist *(*list_append)(struct curl_slist *list, const char *text);
    void (*list_free)(struct curl_slist *list);
    CURLU *(*url_new)(void);
    CURLUcode (*url_set)(CURLU *url, CURLUPart part, const char *text, unsigned flags);
    CURLUcode (*url_get)(CURLU *url, CURLUPart part, char **text, unsigned flags);
    void (*url_free)(CURLU *url);
    void (*free)(void *text);
};

static const struct library_symbol symbols[] = {
    {"curl_global_init", offsetof(struct api, global_init), false},
    {"curl_global_cleanup", offsetof(struct api, global_cleanup), false},
    {"curl_easy_init", offsetof(struct api, easy_init), false},
    {"curl_easy_setopt", offsetof(struct api, set), false},
    {"curl_easy_perform", offsetof(struct api, perform), false},
    {"curl_easy_getinfo", offsetof(struct api, info), false},
    {"curl_easy_strerror", offsetof(struct api, error_text), false},
    {"curl_easy_cleanup", offsetof(struct api, easy_cleanup), false},
    {"curl_slist_append", offsetof(struct api, list_append), false},
    {"curl_slist_free_all", offsetof(struct api, list_free), false},
    {"curl_url", offsetof(struct api, url_new), true},
    {"curl_url_set", offsetof(struct api, url_set), true},
    {"curl_url_get", offsetof(struct api, url_get), true},
    {"curl_url_cleanup", offsetof(struct api, url_free), true},
    {"curl_free", offsetof(struct api, free), false},
};

struct transfer {
    struct api api;
    CURL *curl;
    CURLU *address; // NULL where libcurl has no parser
    const struct hub_options *options;
    struct hub_file wanted;
    struct str endpoint;
    struct str shown;  // the endpoint as messages say it
    struct str origin; // that the token is for
    struct str token;  // empty once a redirect has left the origin
    struct buf body;
    bool too_large;
    bool file_missing; // the model is there, the file is not
};

static bool api_load(struct api *api, struct error *e)
{
    static const char *const names[] = {"libcurl.so.4", "libcurl-gnutls.so.4"};
    // Never closed: the TLS libraries behind it register handlers that run at exit.
    void *library = library_open(names, COUNT_OF(names));
    struct api found = {0};
    if (!library || library_bind(&found, library, symbols, COUNT_OF(symbols))) {
        FAIL(e, IO, STR_NONE, "libcurl.so.4 was not found, so nothing can be downloaded");
        HINT(e, "install libcurl, or give a folder or config.json instead");
        return false;
    }
    *api = found;
    return true;
}

// libcurl gives the type of both callbacks.
// NOLINTNEXTLINE(readability-non-const-parameter)
static size_t on_body(char *data, size_t size, size_t count, void *context)
{
    struct transfer *t = context;
    ptrdiff_t n = (ptrdiff_t)(size * count);
    t->too_large = n > BODY_MAX_BYTES - t->body.n;
    if (t->too_large)
        return 0;
    buf_put(&t->body, (struct str){data, n});
    return size * count;
}

// NOLINTNEXTLINE(readability-non-const-parameter)
static size_t on_header(char *data, size_t size, size_t count, void *context)
{
    struct transfer *t = context;
    struct str_cut line = str_cut((struct str){data, (ptrdiff_t)(size * count)}, ':');
    if (str_equal_nocase(line.head, STR("x-error-code")))
        t->file_missing = str_is(str_trim(line.tail), "EntryNotFound");
    return size * count;
}

// Scheme, host, zone and port as libcurl takes them, a word each; empty when it does not.
static struct str origin_of(struct arena *a, const struct api *api, CURLU *url)
{
    static const CURLUPart parts[] = {CURLUPART_SCHEME, CURLUPART_HOST, CURLUPART_ZONEID,
                                      CURLUPART_PORT};
    struct buf origin = buf_in(a);
    for (int i = 0; i < COUNT_OF(parts); i++) {
        char *text = NULL;
        bool there = api->url_get(url, parts[i], &text, CURLU_DEFAULT_PORT) == CURLUE_OK && text;
        if (!there && parts[i] != CURLUPART_ZONEID)
            return STR_NONE;
        buf_put_z(&origin, there ? text : "");
        buf_char(&origin, ' ');
        api->free(text);
    }
    return buf_str(&origin);
}

// Drops the token where a redirect leads elsewhere. The first address is the endpoint's own.
static void guard_token(struct transfer *t, struct str origin, int hop)
{
    if (hop == 0)
        t->origin = origin;
    else if (!origin.n || !str_equal_nocase(origin, t->origin))
        t->token = STR_NONE;
}

// A password is nobody's to read. What stands before the last @ may be one, however it is written.
static struct str without_userinfo(struct arena *a, struct str url)
{
    struct str_cut at = str_cut_last(url, '@'), scheme = str_cut(url, ':');
    return at.found ? str_format(a, "%.*s://%.*s", STR_ARGS(scheme.head), STR_ARGS(at.tail)) : url;
}

static bool is_web_address(struct str url)
{
    return str_starts(url, STR("https://")) || str_starts(url, STR("http://"));
}

// All that does not depend on the address.
static bool configure(struct transfer *t)
{
    const struct api *api = &t->api;
    CURL *c = t->curl;
    bool protocols =
        api->set(c, CURLOPT_PROTOCOLS_STR, "http,https") == CURLE_OK ||
        api->set(c, OPTION_PROTOCOLS, (long)(CURLPROTO_HTTP | CURLPROTO_HTTPS)) == CURLE_OK;
    return protocols && api->set(c, CURLOPT_FOLLOWLOCATION, 0L) == CURLE_OK &&
           api->set(c, CURLOPT_NOSIGNAL, 1L) == CURLE_OK &&
           api->set(c, CURLOPT_USERAGENT, "fathom") == CURLE_OK &&
           api->set(c, CURLOPT_CONNECTTIMEOUT, t->options->connect_timeout_s) == CURLE_OK &&
           api->set(c, CURLOPT_WRITEFUNCTION, on_body) == CURLE_OK &&
           api->set(c, CURLOPT_WRITEDATA, (void *)t) == CURLE_OK &&
           api->set(c, CURLOPT_HEADERFUNCTION, on_header) == CURLE_OK &&
           api->set(c, CURLOPT_HEADERDATA, (void *)t) == CURLE_OK;
}

static bool unreachable(const struct transfer *t, const char *reason, struct error *e)
{
    FAIL(e, IO, t->wanted.id, "cannot reach %.*s to fetch %.*s (%.*s)", STR_ARGS(t->shown),
         STR_ARGS(t->wanted.id), TEXT_MAX, reason);
    return HINT(e, "give a folder or config.json instead");
}

static bool perform_failed(const struct transfer *t, CURLcode code, struct error *e)
{
    struct str id = t->wanted.id;
    if (t->too_large)
        return FAIL(e, IO, id, "the hub's answer for %.*s is larger than 16 MiB",
                    STR_ARGS(t->wanted.file));
    if (code == CURLE_PARTIAL_FILE || code == CURLE_RECV_ERROR)
        return FAIL(e, IO, id, "the download of %.*s broke off (%.*s)", STR_ARGS(t->wanted.file),
                    TEXT_MAX, t->api.error_text(code));
    return unreachable(t, t->api.error_text(code), e);
}

static bool set_token(struct curl_slist **headers, struct transfer *t, struct arena scratch)
{
    const struct api *api = &t->api;
    if (!t->token.n)
        return true;
    struct str line = str_format(&scratch, "Authorization: Bearer %.*s", STR_ARGS(t->token));
    *headers = api->list_append(NULL, str_z(&scratch, line));
    return *headers && api->set(t->curl, CURLOPT_HTTPHEADER, *headers) == CURLE_OK;
}

// The address of the next request, and whether the token may go there.
static bool set_address(struct transfer *t, struct arena *scratch, struct str url, int hop)
{
    const struct api *api = &t->api;
    const char *text = str_z(scratch, url);
    if (!t->address) {
        guard_token(t, STR_NONE, hop);
        return api->set(t->curl, CURLOPT_URL, text) == CURLE_OK;
    }
    bool ok = api->url_set(t->address, CURLUPART_URL, text, 0) == CURLUE_OK;
    guard_token(t, ok ? origin_of(scratch, api, t->address) : STR_NONE, hop);
    return ok && api->set(t->curl, CURLOPT_CURLU, t->address) == CURLE_OK;
}

// One request without following; leaves the status and the body.
static bool request(struct transfer *t, struct arena scratch, long *status, struct error *e)
{
    const struct api *api = &t->api;
    struct curl_slist *headers = NULL;
    t->body.n = 0;
    t->file_missing = false;
    bool ok = set_token(&headers, t, scratch);
    if (ok) {
        CURLcode code = api->perform(t->curl);
        ok = code == CURLE_OK ? api->info(t->curl, CURLINFO_RESPONSE_CODE, status) == CURLE_OK
                              : perform_failed(t, code, e);
    } else {
        FAIL(e, NO_MEMORY, t->wanted.id, "libcurl could not set up the request");
    }
    api->set(t->curl, CURLOPT_HTTPHEADER, NULL);
    api->list_free(headers);
    return ok;
}

static bool check_status(const struct transfer *t, long status, struct error *e)
{
    struct str id = t->wanted.id;
    if (status == 200)
        return true;
    if (status == 401 || status == 403) {
        FAIL(e, BAD_INPUT, id, "the hub says %.*s is private, gated or not there", STR_ARGS(id));
        return HINT(e, "set HF_TOKEN to a token that may read it");
    }
    if (status == 404 && t->file_missing)
        return FAIL(e, BAD_INPUT, id, "%.*s has no file %.*s on the hub", STR_ARGS(id),
                    STR_ARGS(t->wanted.file));
    if (status == 404)
        return FAIL(e, BAD_INPUT, id, "the hub knows no model %.*s", STR_ARGS(id));
    return FAIL(e, IO, id, "the hub answered with status %ld when asked for %.*s", status,
                STR_ARGS(id));
}

static bool redirect_target(struct str *url, struct transfer *t, struct arena *a, struct error *e)
{
    const char *target = NULL;
    bool told = t->api.info(t->curl, CURLINFO_REDIRECT_URL, &target) == CURLE_OK && target;
    struct str next = str_from(told ? target : NULL);
    bool weaker = str_starts(t->endpoint, STR("https://")) && !str_starts(next, STR("https://"));
    if (!is_web_address(next) || weaker)
        return FAIL(e, IO, t->wanted.id, "the hub redirects %.*s to an address that is not safe",
                    STR_ARGS(t->wanted.file));
    *url = str_copy(a, next);
    return true;
}

static long seconds_now(void)
{
    struct timespec now;
    return clock_gettime(CLOCK_MONOTONIC, &now) == 0 ? (long)now.tv_sec : 0;
}

static bool follow(struct transfer *t, struct arena *scratch, struct str url, struct error *e)
{
    long deadline = seconds_now() + t->options->total_timeout_s;
    for (int hop = 0; hop <= REDIRECTS_MAX; hop++) {
        long status = 0, left = deadline - seconds_now();
        if (left <= 0)
            return unreachable(t, "timeout was reached", e);
        t->api.set(t->curl, CURLOPT_TIMEOUT, left);
        if (!set_address(t, scratch, url, hop))
            return unreachable(t, "libcurl cannot read the address", e);
        if (!request(t, *scratch, &status, e))
            return false;
        if (status < 300 || status > 399)
            return check_status(t, status, e);
        if (!redirect_target(&url, t, scratch, e))
            return false;
    }
    return FAIL(e, IO, t->wanted.id, "the hub redirects %.*s more than %d times",
                STR_ARGS(t->wanted.file), REDIRECTS_MAX);
}

static bool check_options(const struct hub_options *o, const struct hub_file *wanted,
                          struct error *e)
{
    if (!hub_is_id(wanted->id))
        return FAIL(e, BAD_INPUT, wanted->id, "a model on the hub is named OWNER/NAME");
    for (ptrdiff_t i = 0; i < wanted->file.n; i++)
        ASSERT(!strchr("/?#%", wanted->file.p[i]));
    if (o->offline) {
        FAIL(e, IO, wanted->id, "%.*s is not in the cache and downloads are turned off",
             STR_ARGS(wanted->id));
        return HINT(e, "allow downloads, or give a folder or config.json instead");
    }
    if (!is_web_address(o->endpoint))
        return FAIL(e, BAD_INPUT, STR("HF_ENDPOINT"), "the hub's address must begin with https://");
    for (ptrdiff_t i = 0; i < o->token.n; i++)
        if (o->token.p[i] <= ' ' || o->token.p[i] > '~')
            return FAIL(e, BAD_INPUT, STR("HF_TOKEN"),
                        "the token holds a character that no token has");
    return true;
}

static struct str without_final_slash(struct str url)
{
    while (url.n && url.p[url.n - 1] == '/')
        url = str_slice(url, 0, url.n - 1);
    return url;
}

static bool start(struct transfer *t)
{
    const struct api *api = &t->api;
    bool parses = api->url_new && api->url_set && api->url_get && api->url_free;
    t->curl = api->easy_init();
    t->address = parses ? api->url_new() : NULL;
    return t->curl && (t->address || !parses) && configure(t);
}

static void stop(struct transfer *t)
{
    if (t->curl)
        t->api.easy_cleanup(t->curl);
    if (t->address)
        t->api.url_free(t->address);
    t->api.global_cleanup();
}

bool hub_fetch(struct str *body, struct arena *a, const struct hub_options *o,
               struct hub_file wanted, struct error *e)
{
    struct transfer t = {.options = o, .wanted = wanted, .token = o->token, .body = buf_in(a)};
    t.endpoint = without_final_slash(o->endpoint);
    t.shown = without_userinfo(a, t.endpoint);
    if (!check_options(o, &wanted, e) || !api_load(&t.api, e))
        return false;
    if (t.api.global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK)
        return FAIL(e, IO, wanted.id, "libcurl does not start");
    struct str url = str_format(a, "%.*s/%.*s/resolve/main/%.*s", STR_ARGS(t.endpoint),
                                STR_ARGS(wanted.id), STR_ARGS(wanted.file));
    bool ok =
        (start(&t) || FAIL(e, IO, wanted.id, "libcurl does not start")) && follow(&t, a, url, e);
    stop(&t);
    if (ok)
        *body = buf_str(&t.body);
    return ok;
}
