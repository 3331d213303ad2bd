// What engines make of a trial: command, environment, files. Pure.
#include <stdlib.h>

#include "core/base/buf.h"
#include "core/probe/options.h"
#include "tests/support/t.h"

static char block[4 << 20];

static struct arena fresh(void)
{
    return arena_over(block, sizeof block, NULL);
}

static struct settings settings_of(struct arena *a, const char *text)
{
    struct settings s = settings_in(a);
    struct error e = {0};
    CHECK(settings_read(&s, str_from(text), '\n', STR("test"), &e));
    return s;
}

static struct str build(struct arena *a, const char *engine, const struct trial_request *r,
                        struct launch *l, struct error *e)
{
    *l = (struct launch){0};
    struct buf b = buf_in(a);
    if (!engine_find(str_from(engine))->build(l, a, r, e))
        return STR_NONE;
    launch_print(&b, l);
    return buf_str(&b);
}

static bool holds(struct str text, const char *part)
{
    struct str wanted = str_from(part);
    for (ptrdiff_t i = 0; i + wanted.n <= text.n; i++)
        if (str_equal(str_slice(text, i, i + wanted.n), wanted))
            return true;
    return false;
}

static struct str file_of(const struct launch *l, const char *path)
{
    for (int i = 0; i < l->file_count; i++)
        if (str_is(l->files[i].path, path))
            return l->files[i].content;
    return STR_NONE;
}

static struct trial_request request_of(const struct settings *s)
{
    return (struct trial_request){.cell = s,
                                  .model = STR("my model"),
                                  .context = 51200,
                                  .gpus = 4,
                                  .sp = 2,
                                  .max_position = 40960,
                                  .try = 1,
                                  .log = STR("logs/x.log"),
                                  .shipped = STR("share"),
                                  .checkpoints = STR("c/t")};
}

TEST(a_template_is_filled)
{
    struct arena a = fresh();
    struct settings s = settings_of(&a, "command=train --len {context} -n {gpus} --sp {sp} -m "
                                        "'{model}' ${HOME} ${model} {{context} {yarn_factor}");
    struct trial_request r = request_of(&s);
    struct launch l;
    struct error e = {0};
    r.model = STR("a/b-1.5_c,d:e=f+g");
    build(&a, "command", &r, &l, &e);
    CHECK_STR(str_from(l.arguments[4]), "train --len 51200 -n 4 --sp 2 -m 'a/b-1.5_c,d:e=f+g' "
                                        "${HOME} ${model} {context} 1.25");
    CHECK_STR(str_from(l.arguments[0]), "bash");
}

TEST(one_gpu_plays_the_ranks_of_any_command)
{
    struct arena a = fresh();
    struct settings s = settings_of(&a, "command=train {context}\none-gpu=on");
    struct trial_request r = request_of(&s);
    struct launch l;
    struct error e = {0};
    r.python_path = STR("/logs/share/one_gpu:/mine");
    r.limit_bytes = 7;
    struct str text = build(&a, "command", &r, &l, &e);
    CHECK(holds(text, " PYTHONPATH=/logs/share/one_gpu:/mine FATHOM_PLAY_RANKS=4 "
                      "FATHOM_PLAY_LIMIT=7 bash "));
    CHECK_U64(l.gpus, 1); // of a scheduler
    s = settings_of(&a, "command=train {context}\none-gpu=off");
    CHECK(!holds(build(&a, "command", &r, &l, &e), "PYTHONPATH"));
}

// What a shell could take for more than a word is not made text of its.
TEST(a_value_that_is_no_plain_word_is_refused)
{
    static const struct {
        const char *value, *trouble;
    } rows[] = {
        {"my model", "has a space"},
        {"", "is empty"},
        {"-x", "begins with '-'"},
        {"a$b", "has a $"},
        {"it's", "has a '"},
        {"a\tb", "has a character that is no plain one"},
        {"\xc3\xa4", "has a character that is no plain one"},
    };
    for (ptrdiff_t i = 0; i < COUNT_OF(rows); i++) {
        struct arena a = fresh();
        struct settings s = settings_of(&a, "command=f {context} \"{model}\"");
        struct trial_request r = request_of(&s);
        struct launch l;
        struct error e = {0};
        r.model = str_from(rows[i].value);
        CHECK_U64((uint64_t)build(&a, "command", &r, &l, &e).n, 0);
        struct str wanted = str_format(&a, "{model}: its value %s; write \"$FATHOM_MODEL\" instead",
                                       rows[i].trouble);
        CHECK_STR(wanted, e.message);
    }
}

// The text stays as it is, and the values are beside it.
TEST(values_are_in_the_environment)
{
    struct arena a = fresh();
    struct settings s = settings_of(&a, "command=f $FATHOM_CONTEXT \"$FATHOM_MODEL\"");
    struct trial_request r = request_of(&s);
    struct launch l;
    struct error e = {0};
    r.cp = 3;
    r.limit_bytes = 7;
    r.model = STR("$x's \"y\"");
    CHECK_STR(build(&a, "command", &r, &l, &e),
              "FATHOM_CONTEXT=51200 FATHOM_GPUS=4 FATHOM_SP=2 FATHOM_CP=3 "
              "FATHOM_MODEL='$x'\\''s \"y\"' FATHOM_LOG=logs/x.log FATHOM_TRY=1 "
              "FATHOM_YARN_FACTOR=1.25 FATHOM_LIMIT_BYTES=7 "
              "bash -o pipefail -c 'f $FATHOM_CONTEXT \"$FATHOM_MODEL\"'");
}

TEST(a_template_without_the_length)
{
    struct arena a = fresh();
    struct settings s = settings_of(&a, "command=train {{context} {gpus}");
    struct trial_request r = request_of(&s);
    struct launch l;
    struct error e = {0};
    CHECK_U64((uint64_t)build(&a, "command", &r, &l, &e).n, 0);
    CHECK_STR(str_from(e.message),
              "without {context} or $FATHOM_CONTEXT every trial would be the same; they stand for "
              "the length");
}

// Frameworks take int(max_position * factor) as the longest length.
TEST(yarn_never_comes_out_short)
{
    static const uint64_t positions[] = {2048, 4096, 32768, 40960, 131072, 262144, 1000003};
    for (ptrdiff_t i = 0; i < COUNT_OF(positions); i++)
        for (uint64_t more = 1; more < 3000000; more = more * 3 + 7) {
            char block_of_text[64];
            struct arena a = arena_over(block_of_text, sizeof block_of_text, NULL);
            struct trial_request r = {.context = positions[i] + more, .max_position = positions[i]};
            struct str text = trial_yarn_text(&a, &r);
            double factor = strtod(str_z(&a, text), NULL);
            CHECK_U64((uint64_t)(factor * (double)positions[i]), r.context);
        }
    struct arena a = fresh();
    struct trial_request r = {.context = 50000, .max_position = 40960};
    CHECK_STR(trial_yarn_text(&a, &r), "1.220703125");
}

TEST(a_template_that_means_nothing)
{
    struct arena a = fresh();
    struct settings s = settings_of(&a, "command=train {length}");
    struct trial_request r = request_of(&s);
    struct launch l;
    struct error e = {0};
    CHECK_U64((uint64_t)build(&a, "command", &r, &l, &e).n, 0);
    CHECK_STR(str_from(e.message), "'{length}' stands for nothing");
}

TEST(a_torch_trial_is_a_file)
{
    struct arena a = fresh();
    struct settings s = settings_of(&a, "recipe=trinity\none-gpu=on\nbatch=2k\nsave-hf=never\n"
                                        "python=/opt/py\nmodel=Qwen3-0.6B\ntorch=2.8");
    struct trial_request r = request_of(&s);
    struct launch l;
    struct error e = {0};
    r.config = STR("{}");
    r.limit_bytes = 7;
    r.workspace_bytes = UINT64_C(32) << 20;
    r.socket = STR("/tmp/s");
    CHECK_STR(build(&a, "torch", &r, &l, &e),
              "/opt/py -u share/torch_worker.py --ask /tmp/s logs/x.json");
    CHECK_U64((uint64_t)l.file_count, 1);
    CHECK_STR(l.files[0].path, "logs/x.json");
    CHECK_STR(
        l.files[0].content,
        "{\n  \"context\": 51200,\n  \"world\": 4,\n  \"sp\": 2,\n  \"recipe\": \"trinity\",\n"
        "  \"batch\": 2048,\n  \"save_hf\": \"never\",\n  \"one_gpu\": true,\n"
        "  \"limit_bytes\": 7,\n  \"workspace\": \":4096:8\",\n  \"yarn_factor\": 1.25,\n  "
        "\"config\": "
        "{}\n}\n");
}

TEST(a_torch_trial_spreads_its_context)
{
    struct arena a = fresh();
    struct settings s = settings_of(&a, "cp=2\ncp-rank=1\nsp=1\nmodel=Qwen3-0.6B");
    struct trial_request r = request_of(&s);
    struct launch l;
    struct error e = {0};
    r.config = STR("{}");
    r.sp = 1;
    r.cp = 2;
    CHECK(build(&a, "torch", &r, &l, &e).n > 0);
    CHECK(holds(l.files[0].content, "\"cp\": 2,\n  \"cp_rank\": 1,\n"));
    r.context = 51202;
    CHECK_U64((uint64_t)build(&a, "torch", &r, &l, &e).n, 0);
    CHECK_STR(str_from(e.message),
              "51202 tokens are not a multiple of twice cp 2, in which they are dealt out");
}

// What an engine would leave out silently it refuses, and says what it does.
static const struct {
    const char *engine, *settings, *message;
    uint64_t gpus;
} refusals[] = {
    {"torch", "strategy=zero3",
     "the torch engine does strategy single|ddp|fsdp1|fsdp2, not "
     "'zero3'",
     4},
    {"torch", "optimizer=adamw-8bit",
     "the torch engine does optimizer adamw|adamw-fused|sgd, "
     "not 'adamw-8bit'",
     4},
    {"torch", "loss=liger", "the torch engine does loss full|chunked:|none, not 'liger'", 4},
    {"torch", "offload=optimizer", "the torch engine does offload off|all, not 'optimizer'", 4},
    {"torch", "recipe=trl", "the torch engine does recipe hf|trinity, not 'trl'", 4},
    {"torch", "lora=8", "the torch engine has no lora", 4},
    {"torch", "cp=2\nsp=1", NULL, 4},
    {"torch", "cp=2\nsp=2", "the torch engine does cp 2 only with sp 1, not with 2", 4},
    {"torch", "cp=2\nloss=none", "the torch engine does loss none only with cp 1, not with 2", 4},
    {"torch", "cp=2\nstrategy=fsdp1",
     "the torch engine does cp 2 only with strategy fsdp2, not with fsdp1", 4},
    {"torch", "cp=2\ndevice=cpu", "the torch engine does cp 2 only with device cuda, not with cpu",
     4},
    {"trinity", "cp=2", "the trinity engine has no cp; --sp splits sequences", 4},
    {"torch", "entropy-saving=yes",
     "the torch engine does entropy-saving on only with recipe trinity, not with hf", 4},
    {"torch", "recipe=hf\nsave-hf=never",
     "the torch engine does save-hf never only with recipe trinity, not with hf", 4},
    {"torch", "recipe=trinity\nloss=full",
     "the torch engine does loss full only with recipe hf, not with trinity", 4},
    {"torch", "offload=all",
     "the torch engine does offload all only with strategy fsdp1|fsdp2, not with single", 1},
    {"torch", "reshard=off\nstrategy=ddp",
     "the torch engine does reshard off only with strategy fsdp2, not with ddp", 4},
    {"torch", "precision=mixed\nstrategy=ddp",
     "the torch engine does precision mixed only with strategy fsdp1|fsdp2, not with ddp", 4},
    {"torch", "precision=bf16\nstrategy=fsdp1",
     "the torch engine does precision bf16 only with strategy single|ddp|fsdp2, not with fsdp1", 4},
    {"torch", "offload=all", NULL, 2},
    {"torch", "recipe=trinity\noffload=all\nentropy-saving=on", NULL, 1},
    {"torch", "recipe=hf\nloss=chunked:2048\nentropy-saving=off\nreshard=on", NULL, 1},
    {"trinity", "strategy=ddp", "the trinity engine does strategy fsdp1|fsdp2, not 'ddp'", 4},
    {"trinity", "strategy=zero2", "the trinity engine does strategy fsdp1|fsdp2, not 'zero2'", 4},
    {"trinity", "offload=optimizer", "the trinity engine does offload off|all, not 'optimizer'", 4},
    {"trinity", "strategy=fsdp2\noffload=all", NULL, 4},
};

TEST(engines_refuse_what_they_do_not_do)
{
    for (ptrdiff_t i = 0; i < COUNT_OF(refusals); i++) {
        struct arena a = fresh();
        struct settings s = settings_of(&a, refusals[i].settings);
        struct trial_request r = request_of(&s);
        struct launch l;
        struct error e = {0};
        r.config = STR("{}");
        r.gpus = refusals[i].gpus;
        CHECK((build(&a, refusals[i].engine, &r, &l, &e).n == 0) == (refusals[i].message != NULL));
        CHECK_STR(str_from(e.message), refusals[i].message ? refusals[i].message : "");
    }
}

TEST(accelerate_gets_the_files_of_emit)
{
    struct arena a = fresh();
    struct settings s = settings_of(&a, "model=Qwen3-0.6B\nstrategy=fsdp2");
    struct trial_request r = request_of(&s);
    struct launch l;
    struct error e = {0};
    r.context = 4096;
    r.config = STR("{}");
    CHECK_U64((uint64_t)build(&a, "accelerate", &r, &l, &e).n, 0); // for which machine?
    e = (struct error){0};
    r.machine = STR("4xH100-80G");
    CHECK_STR(build(&a, "accelerate", &r, &l, &e), "MASTER_PORT=0 bash logs/x/launch.sh --trial");
    CHECK_U64((uint64_t)l.file_count, 4);
    CHECK_STR(l.files[1].path, "logs/x/launch.sh");
    CHECK(holds(l.files[1].content, "--model model\n"));
    CHECK_STR(l.files[3].path, "logs/x/model/config.json");
    s = settings_of(&a, "model=Qwen3-0.6B\nlayers=2");
    CHECK_U64((uint64_t)build(&a, "deepspeed", &r, &l, &e).n, 0);
    CHECK_STR(str_from(e.message), "the deepspeed engine has no layers");
}

static void check_yarn(const char *engine)
{
    struct arena a = fresh();
    struct settings s = settings_of(&a, "model=Qwen3-0.6B");
    struct trial_request r = request_of(&s);
    struct launch l;
    struct error e = {0};
    r.config = STR("{}");
    r.machine = STR("4xH100-80G");
    r.limit_bytes = 7;
    r.workspace_bytes = UINT64_C(8519680); // an A100's
    CHECK_STR(build(&a, engine, &r, &l, &e), "CUBLAS_WORKSPACE_CONFIG=:4096:2:16:8 MASTER_PORT=0 "
                                             "bash logs/x/launch.sh --trial --limit-bytes 7");
    struct str launch = file_of(&l, "logs/x/launch.sh");
    CHECK(holds(launch, "python3 yarn.py model model-yarn 1.2500\n"));
    CHECK(holds(launch, "--model model-yarn\n"));
    CHECK(file_of(&l, "logs/x/yarn.py").n > 0);
    CHECK(file_of(&l, "logs/x/model/config.json").n > 0);
}

TEST(longer_lengths_get_yarn_from_the_files)
{
    check_yarn("accelerate");
    check_yarn("deepspeed");
}

static const char tiny_words[] =
    "model=tiny\nconfig.model_type=qwen3\nconfig.hidden_size=64\nconfig.intermediate_size=128\n"
    "config.num_hidden_layers=2\nconfig.num_attention_heads=4\nconfig.num_key_value_heads=2\n"
    "config.head_dim=16\nconfig.vocab_size=256\nconfig.max_position_embeddings=40960\n"
    "config.tie_word_embeddings=true\n";

static struct trial_request tiny_request(struct arena *a, struct settings *s, const char *more)
{
    struct buf words = buf_in(a);
    buf_printf(&words, "%s%s", tiny_words, more);
    *s = settings_of(a, str_z(a, buf_str(&words)));
    struct trial_request r = request_of(s);
    r.context = 4096;
    r.sp = 1;
    r.machine = STR("4xH100-80G");
    r.config = STR("{}");
    r.python_path = STR("p");
    return r;
}

// TRL's own script: its rows, weights and limit come from outside it.
TEST(trl_trains_what_its_files_say)
{
    struct arena a = fresh();
    struct settings s;
    struct launch l;
    struct error e = {0};
    struct trial_request r = tiny_request(&a, &s, "batch=2\naccum=5\n");
    r.limit_bytes = 7;
    struct str text = build(&a, "trl", &r, &l, &e);
    CHECK(holds(text, "PYTHONPATH=p FATHOM_PLAY_LIMIT=7 MASTER_PORT=0 python3 share/trl_trial.py "
                      "logs/x c/t 4096 120")); // 3 steps of 2 x 5 rows on 4 GPUs
    CHECK(holds(file_of(&l, "logs/x/sft.yaml"), "model_name_or_path: model\n"));
    CHECK(holds(file_of(&l, "logs/x/sft.yaml"), "data_files: trial.jsonl\n"));
    CHECK_STR(file_of(&l, "logs/x/config/config.json"), "{}");
    CHECK_U64(l.gpus, 0);
    r = tiny_request(&a, &s, "batch=2\naccum=5\none-gpu=on\n");
    text = build(&a, "trl", &r, &l, &e);
    CHECK(holds(text, "FATHOM_PLAY_RANKS=4 FATHOM_PLAY_LIMIT=0 "));
    CHECK(holds(text, " logs/x c/t 4096 30"));
    CHECK_U64(l.gpus, 1);
}

// What transformers' Trainer sets by itself, said to the script that Accelerate starts.
TEST(transformers_trains_with_the_trainers_defaults)
{
    struct arena a = fresh();
    struct settings s;
    struct launch l;
    struct error e = {0};
    struct trial_request r = tiny_request(&a, &s, "one-gpu=on\n");
    CHECK(holds(build(&a, "transformers", &r, &l, &e), "bash logs/x/launch.sh --trial"));
    struct str launch = file_of(&l, "logs/x/launch.sh");
    CHECK(holds(launch, "--optimizer adamw-fused\n") && !holds(launch, "--checkpointing"));
    CHECK(holds(file_of(&l, "logs/x/accelerate.yaml"), "distributed_type: MULTI_GPU\n"));
}

TEST(transformers_trains_under_fsdp2)
{
    struct arena a = fresh();
    struct settings s;
    struct launch l;
    struct error e = {0};
    struct trial_request r = tiny_request(&a, &s, "strategy=fsdp2\ncheckpointing=on\n");
    CHECK(build(&a, "transformers", &r, &l, &e).n > 0);
    CHECK(holds(file_of(&l, "logs/x/launch.sh"), "--checkpointing\n"));
    CHECK(holds(file_of(&l, "logs/x/accelerate.yaml"), "distributed_type: FSDP\n"));
    r = tiny_request(&a, &s, "strategy=fsdp2\naccum=2\n");
    CHECK(!build(&a, "transformers", &r, &l, &e).n);
    CHECK_STR(str_from(e.message),
              "train.py reduces gradients after each micro-batch: --sync-each-batch on");
}

TEST(deepspeed_trains_on_one_gpu_too)
{
    struct arena a = fresh();
    struct settings s = settings_of(&a, "model=Qwen3-0.6B");
    struct trial_request r = request_of(&s);
    struct launch l;
    struct error e = {0};
    r.machine = STR("1xH100-80G");
    r.context = 4096;
    CHECK(build(&a, "deepspeed", &r, &l, &e).n > 0);
    CHECK(holds(file_of(&l, "logs/x/deepspeed.json"), "\"stage\": 3"));
    CHECK(holds(file_of(&l, "logs/x/accelerate.yaml"), "distributed_type: DEEPSPEED\n"));
}

TEST(trinity_gets_its_environment)
{
    struct arena a = fresh();
    struct settings s = settings_of(&a, "offload=all\nexpandable=on\ndlc=on");
    struct trial_request r = request_of(&s);
    struct launch l;
    struct error e = {0};
    CHECK_STR(build(&a, "trinity", &r, &l, &e),
              "GPU_NUM=5 ENGINE_NUM=1 SP_NUM=2 REPEAT_TIMES=16 MODEL_PATH='my model' "
              "MAX_MODEL_LEN=51200 SAVE_HF_CHECKPOINT=last TRAINER_STRATEGY=fsdp2 "
              "TRINITY_CHECKPOINT_ROOT_DIR=c/t ROPE_SCALING=null FATHOM_YARN=1.25 OFFLOAD=true "
              "ENTROPY_SAVING=false FATHOM_FUSED_KERNELS=false FATHOM_MODE=both "
              "FATHOM_SAMPLES=default "
              "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True python3 -u share/trinity_trial.py "
              "--config share/trinity_capacity.yaml --plugin-dir share/trinity_plugin --dlc");
    s = settings_of(&a, "train-only=on\npython=p");
    struct str alone = build(&a, "trinity", &r, &l, &e);
    CHECK(holds(alone, "FATHOM_MODE=train FATHOM_SAMPLES=fathom_synthetic"));
    CHECK_STR(str_from(l.environment[0]), "GPU_NUM=4");
    CHECK_STR(str_from(l.arguments[0]), "p");
}

TEST(trinity_takes_files_of_the_users)
{
    struct arena a = fresh();
    struct settings s = settings_of(&a, "trinity-config=my.yaml\nplugin-dir=my/plug-ins");
    struct trial_request r = request_of(&s);
    struct launch l;
    struct error e = {0};
    CHECK(holds(build(&a, "trinity", &r, &l, &e),
                " share/trinity_trial.py --config my.yaml --plugin-dir my/plug-ins"));
    s = settings_of(&a, "trinity-config=my.yaml\ntrain-only=on");
    CHECK_U64((uint64_t)build(&a, "trinity", &r, &l, &e).n, 0);
    CHECK_STR(str_from(e.message),
              "train-only is read by the shipped configuration, and --trinity-config is yours");
}

TEST(trinity_refuses_what_the_test_sets)
{
    struct arena a = fresh();
    struct settings s;
    struct trial_request r = request_of(&s);
    struct launch l;
    struct error e = {0};
    s = settings_of(&a, "batch=4");
    CHECK_U64((uint64_t)build(&a, "trinity", &r, &l, &e).n, 0);
    CHECK_STR(str_from(e.message),
              "the trinity engine runs the published test, where batch is not open");
}

TEST(configurations_are_made_whole_again)
{
    struct arena a = fresh();
    struct settings s = settings_of(&a, "config.model_type=x\nconfig.text_config.hidden_size=64\n"
                                        "config.text_config.eps=1e-06\nconfig.kinds.0=full\n"
                                        "config.kinds.1=slide\nconfig.tie=true\nconfig.none=null\n"
                                        "config.version=4.5.0\nconfig.low=-1.5\n"
                                        "config.id2label.0=no\nconfig.id2label.1=yes\n"
                                        "config.final_logit_softcapping=30\n"
                                        "config.time_step_limit.0=0\nconfig.places.0=0\n"
                                        "config.rms_norm_eps=1e-06");
    CHECK_STR(model_config_json(&a, &s),
              "{\n  \"model_type\": \"x\",\n  \"text_config\": {\n    \"hidden_size\": 64,\n"
              "    \"eps\": 1e-06\n  },\n  \"kinds\": [\n    \"full\",\n    \"slide\"\n  ],\n"
              "  \"tie\": true,\n  \"none\": null,\n  \"version\": \"4.5.0\",\n  \"low\": -1.5,\n"
              "  \"id2label\": {\n    \"0\": \"no\",\n    \"1\": \"yes\"\n  },\n"
              "  \"final_logit_softcapping\": 30.0,\n  \"time_step_limit\": [\n    0.0\n  ],\n"
              "  \"places\": [\n    0\n  ],\n  \"rms_norm_eps\": 1e-06\n}");
    s = settings_of(&a, "model=Qwen3-0.6B");
    CHECK(str_starts(model_config_json(&a, &s),
                     STR("{\n  \"model_type\": \"qwen3\",\n  \"hidden_size\": 1024,\n")));
}

TEST(keys_hold_what_makes_a_cell)
{
    struct arena a = fresh();
    struct error e = {0};
    struct settings s =
        settings_of(&a, "engine=torch\nexpandable=on\nlog-dir=x\ntimeout=5\ngpus=1,2\ngrid=64\n"
                        "python=/opt/py");
    struct settings cell = settings_in(&a);
    struct cell_choice choice = {STR("m"), 0, STR("2"), STR("1"), STR("1")};
    CHECK(probe_cell_settings(&cell, &s, &choice, &e));
    CHECK_STR(probe_cell_key(&a, &cell, STR_NONE),
              "model=m\nsp=1\nexpandable=on\ngpus=2\nengine=torch\npython=/opt/py\n");
    CHECK_STR(probe_cell_key(&a, &cell, STR("NVIDIA H200")),
              "model=m\nsp=1\nexpandable=on\ngpus=2\nengine=torch\npython=/opt/py\n"
              "card=NVIDIA H200\n");
}

TEST(models_of_a_list_have_their_own_files)
{
    struct arena a = fresh();
    struct error e = {0};
    struct settings s = settings_of(&a, "model=./a,Qwen3-0.6B,b/config.json\ngpus=2\n"
                                        "configs.0.model_type=qwen3\nconfigs.0.hidden_size=64\n"
                                        "configs.2.model_type=llama\nconfigs.2.hidden_size=32");
    static const char *const types[] = {"qwen3", NULL, "llama"};
    for (ptrdiff_t i = 0; i < COUNT_OF(types); i++) {
        struct settings cell = settings_in(&a);
        struct cell_choice choice = {STR("m"), i, STR("2"), STR("1"), STR("1")};
        CHECK(probe_cell_settings(&cell, &s, &choice, &e));
        const struct setting *type = settings_find_z(&cell, "config.model_type");
        CHECK_STR(type ? type->value : STR_NONE, types[i] ? types[i] : "");
        CHECK(!settings_find_z(&cell, "configs.0.model_type"));
        CHECK_STR(settings_find_z(&cell, "model")->value, "m");
    }
}

TEST(models_are_called_by_the_end_of_their_path)
{
    static const char *const rows[][2] = {
        {"", "model"},
        {"Qwen3-0.6B", "Qwen3-0.6B"},
        {"Qwen/Qwen3-0.6B", "Qwen3-0.6B"},
        {"/models/my-model", "my-model"},
        {"/models/my-model//", "my-model"},
        {"./my-model/config.json", "my-model"},
        {"./my-model//config.json", "my-model"},
        {"other.json", "other"},
        {"/", "model"},
    };
    for (ptrdiff_t i = 0; i < COUNT_OF(rows); i++)
        CHECK_STR(probe_model_name(str_from(rows[i][0])), rows[i][1]);
}

TEST(what_every_cell_refuses_is_refused_at_once)
{
    static const char *const rows[][2] = {
        {"engine=accelerate\nmodel=Qwen3-0.6B\ngpus=1\nstrategy=fsdp2",
         "has nothing to shard over on one GPU"},
        {"engine=accelerate\nmodel=Qwen3-0.6B\ngpus=1,2\nstrategy=fsdp2", ""},
        {"engine=accelerate\nmodel=Qwen3-0.6B\ngpus=2,4\nsp=2", "through DeepSpeed only"},
        {"engine=accelerate\nmodel=Qwen3-0.6B\ngpus=2,4\nsp=1,2", ""},
        {"engine=deepspeed\nmodel=Qwen3-0.6B\ngpus=1,2,4\nsp=1,2", ""},
        {"engine=deepspeed\nmodel=Qwen3-0.6B\nrecipe=hf", "trains the deepspeed recipe only"},
        {"engine=accelerate\nmodel=Qwen3-0.6B\npython=p",
         "python is for --engine torch or trinity"},
        {"engine=torch\nmodel=Qwen3-0.6B,Qwen/Qwen3-0.6B", "are called 'Qwen3-0.6B'"},
        {"engine=torch\nmodel=Qwen3-0.6B,Qwen3-4B\npython=p", ""},
    };
    for (ptrdiff_t i = 0; i < COUNT_OF(rows); i++) {
        struct arena a = fresh();
        struct settings s = settings_of(&a, rows[i][0]);
        struct probe_options o;
        struct error e = {0};
        bool ok = probe_options_read(&o, &a, &s, &e);
        if (ok != !rows[i][1][0] || !holds(str_from(e.message), rows[i][1]))
            test_failed(__FILE__, __LINE__, "%s: '%s'", rows[i][0], e.message);
    }
}
