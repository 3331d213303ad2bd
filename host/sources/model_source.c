// The order: catalogue, then a path that exists, then the hub's cache, then the hub. A name that is
// both in the catalogue and in this folder means the catalogue; "./NAME" means the folder.
#include "host/sources/model_source.h"

#include "core/model/model.h"
#include "host/formats/json_in.h"
#include "host/formats/safetensors.h"

enum { CONFIG_MAX_BYTES = 16 << 20 };

static bool flatten_config(struct settings *s, struct str text, struct str where, struct error *e)
{
    return json_flatten(s, text, STR("config."), where, e) &&
           (settings_find_z(s, "config.model_type") ||
            FAIL(e, BAD_INPUT, where, "the configuration has no model_type"));
}

static bool add_config(struct settings *s, struct str path, struct error *e)
{
    struct str text;
    return file_read(&text, s->arena, path, CONFIG_MAX_BYTES, e) &&
           flatten_config(s, text, path, e);
}

static bool add_count(struct settings *s, const char *key, uint64_t value, struct str where,
                      struct error *e)
{
    struct str text = str_format(s->arena, "%llu", (unsigned long long)value);
    return settings_add(s, (struct setting){str_from(key), text, where}, e);
}

static bool add_weights(struct settings *s, struct str folder, struct error *e)
{
    struct weights w;
    bool found;
    if (!weights_of_folder(&w, &found, *s->arena, folder, e))
        return false;
    if (!found && !w.missing_files)
        return true;
    struct setting types = {STR("weights.types"), weights_dtypes(s->arena, &w), folder};
    struct setting missing = {STR("weights.first_missing"),
                              str_copy(s->arena, str_from(w.first_missing)), folder};
    struct setting quantized = {STR("weights.quantized"), w.quantized ? STR("on") : STR("off"),
                                folder};
    return add_count(s, "weights.parameters", w.parameters, folder, e) &&
           add_count(s, "weights.tensors", w.tensors, folder, e) &&
           add_count(s, "weights.bytes", w.bytes, folder, e) &&
           add_count(s, "weights.files", w.files, folder, e) &&
           add_count(s, "weights.missing_files", w.missing_files, folder, e) &&
           settings_add(s, types, e) && settings_add(s, missing, e) &&
           settings_add(s, quantized, e);
}

struct str model_source_path(struct arena *a, struct str name)
{
    enum path_kind kind = name.n ? path_kind(*a, name) : PATH_NONE;
    if (kind != PATH_FILE)
        return kind == PATH_FOLDER ? path_real(a, name) : STR_NONE;
    struct str_cut c = str_cut_last(name, '/');
    struct str folder = !c.found ? STR(".") : c.head.n ? c.head : STR("/");
    struct str real = path_real(a, folder);
    return real.n ? path_join(a, real, c.found ? c.tail : name) : STR_NONE;
}

static bool add_path(struct settings *s, struct setting item, struct error *e)
{
    struct setting path = {STR("weights.path"), model_source_path(s->arena, item.value),
                           item.where};
    if (!path.value.n)
        return FAIL(e, IO, item.where, "'%.*s' can no longer be found",
                    STR_ARGS(str_short(item.value)));
    return settings_add(s, path, e);
}

static bool from_folder(struct settings *s, struct str folder, struct str where, struct error *e)
{
    struct str config = path_join(s->arena, folder, STR("config.json"));
    if (path_kind(*s->arena, config) != PATH_FILE)
        return FAIL(e, BAD_INPUT, where, "the folder '%.*s' has no config.json",
                    STR_ARGS(str_short(folder)));
    return add_config(s, config, e) && add_weights(s, folder, e);
}

static bool from_hub(struct settings *s, struct str id, const struct hub_options *hub,
                     struct error *e)
{
    struct str path, text;
    struct hub_file wanted = {id, STR("config.json")};
    if (hub_cached(&path, s->arena, hub, id, wanted.file))
        return from_folder(s, str_cut_last(path, '/').head, id, e);
    return hub_fetch(&text, s->arena, hub, wanted, e) &&
           flatten_config(s, text, str_format(s->arena, "%.*s/config.json", STR_ARGS(id)), e);
}

static bool looks_like_path(struct str text)
{
    bool deep = str_cut(str_cut(text, '/').tail, '/').found; // no owner/name of the hub
    return deep || str_starts(text, STR("/")) || str_starts(text, STR("./")) ||
           str_starts(text, STR("../")) || str_starts(text, STR("~")) || str_ends(text, STR("/")) ||
           str_ends(text, STR(".json"));
}

// Where the hub cannot be asked, the catalogue's model of such a name has to do; the model says so.
static bool use_likeness(const struct catalog_answer *known, struct str name, struct error *e)
{
    if (e->code != ERROR_IO || !(known->row || known_model_find(name)))
        return false;
    *e = (struct error){0};
    return true;
}

// A file's path of a model may be another machine's: the catalogue's model of that name is meant
// where there is none here. What a user names himself must be there.
static bool use_name(struct settings *s, struct setting item, bool *used, struct error *e)
{
    struct str path = item.value;
    while (path.n > 1 && str_ends(path, STR("/")))
        path.n--;
    struct str_cut folder = str_cut_last(path, '/');
    item.value = folder.found ? folder.tail : path;
    struct catalog_answer known = catalog_model_answer(item.value);
    *used = !str_starts(item.where, STR("--")) && known.row;
    return !*used || settings_set(s, item, e);
}

static bool resolve(struct settings *s, struct setting item, const struct hub_options *hub,
                    struct error *e)
{
    struct catalog_answer known = catalog_model_answer(item.value);
    if (known.row && !known.likened)
        return true;
    switch (path_kind(*s->arena, item.value)) {
    case PATH_FOLDER:
        return from_folder(s, item.value, item.where, e) && add_path(s, item, e);
    case PATH_FILE:
        return add_config(s, item.value, e) && add_path(s, item, e);
    case PATH_NONE:
        break;
    }
    bool named = false;
    if (looks_like_path(item.value) && (!use_name(s, item, &named, e) || named))
        return named;
    if (looks_like_path(item.value))
        return FAIL(e, BAD_INPUT, item.where, "there is no file or folder '%.*s'",
                    STR_ARGS(str_short(item.value)));
    if (hub_is_id(item.value))
        return from_hub(s, item.value, hub, e) || use_likeness(&known, item.value, e);
    return known.row || catalog_model_unknown(item.value, item.where, e);
}

// What the file of one model of a list says, with its number in the list in front.
static bool add_numbered(struct settings *s, const struct settings *found, int number,
                         struct error *e)
{
    for (ptrdiff_t i = 0; i < found->count; i++) {
        struct setting item = found->items[i];
        struct str_cut key = str_cut(item.key, '.');
        if (!str_is(key.head, "config"))
            continue;
        item.key = str_format(s->arena, "configs.%d.%.*s", number, STR_ARGS(key.tail));
        if (!settings_add(s, item, e))
            return false;
    }
    return true;
}

static bool resolve_list(struct settings *s, struct setting list, const struct hub_options *hub,
                         struct error *e)
{
    int number = 0;
    for (struct str_cut c = str_cut(list.value, ',');; c = str_cut(c.tail, ','), number++) {
        struct settings found = settings_in(s->arena);
        struct setting item = {list.key, str_trim(c.head), list.where};
        if (item.value.n && !(resolve(&found, item, hub, e) && add_numbered(s, &found, number, e)))
            return false;
        if (!c.found)
            return true;
    }
}

bool model_source_resolve(struct settings *s, const struct hub_options *hub, struct error *e)
{
    const struct setting *found = settings_find_z(s, "model");
    if (!found || settings_find_z(s, "config.model_type"))
        return true;
    struct setting item = *found; // the list may move while it grows
    bool list = str_cut(item.value, ',').found && path_kind(*s->arena, item.value) == PATH_NONE;
    return list ? resolve_list(s, item, hub, e) : resolve(s, item, hub, e);
}
