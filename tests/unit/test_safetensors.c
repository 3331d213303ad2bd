// Headers of safetensors files, good and forged, and folders with one file, an index, or neither.
#include "host/formats/safetensors.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/base/buf.h"
#include "host/files/file.h"
#include "tests/support/t.h"
#include "tests/support/temp.h"

#define TENSOR(dtype, shape, offsets) \
    "{\"dtype\": \"" dtype "\", \"shape\": " shape ", \"data_offsets\": " offsets "}"

static void refused(const char *header, const char *message)
{
    struct weights w = {.parameters = 7};
    struct error e = {0};
    CHECK(!safetensors_header_read(&w, *test_arena(), str_from(header), STR("m.st"), &e));
    CHECK_U64(e.code, ERROR_BAD_INPUT);
    CHECK_STR(str_from(e.message), message);
    CHECK_U64(w.parameters, 7);
    CHECK_U64(w.tensors, 0);
}

TEST(safetensors_header_adds_up)
{
    struct weights w = {0};
    struct error e = {0};
    struct arena *a = test_arena();
    struct str header = str_format(a, "{\"__metadata__\": {\"format\": \"pt\"}%s%s%s}  ",
                                   ", \"a\": " TENSOR("BF16", "[4, 8]", "[0, 64]"),
                                   ", \"b\": " TENSOR("F32", "[]", "[64, 68]"),
                                   ", \"c\": " TENSOR("BF16", "[0, 9]", "[68, 68]"));
    CHECK(safetensors_header_read(&w, *a, header, STR("m.st"), &e));
    CHECK_U64(w.parameters, 33);
    CHECK_U64(w.tensors, 3);
    CHECK_U64(w.bytes, 68);
    CHECK(!w.quantized);
    CHECK_STR(weights_dtypes(a, &w), "BF16, F32");
    CHECK(safetensors_header_read(&w, *a, header, STR("m.st"), &e));
    CHECK_U64(w.parameters, 66);
}

TEST(safetensors_quantized)
{
    struct weights w = {0}, masked = {0};
    struct error e = {0};
    struct arena *a = test_arena();
    struct str header =
        str_format(a, "{\"a\": %s, \"b\": %s, \"c\": %s}", TENSOR("F8_E4M3", "[64]", "[0, 64]"),
                   TENSOR("F4", "[2, 4]", "[64, 68]"), TENSOR("BF16", "[8]", "[68, 84]"));
    CHECK(safetensors_header_read(&w, *a, header, STR("m.st"), &e));
    CHECK(w.quantized);
    CHECK_STR(weights_dtypes(a, &w), "F8_E4M3, BF16, F4");
    header = str_format(a, "{\"w\": %s, \"mask\": %s}", TENSOR("F16", "[1000]", "[0, 2000]"),
                        TENSOR("U8", "[10]", "[2000, 2010]"));
    CHECK(safetensors_header_read(&masked, *a, header, STR("m.st"), &e));
    CHECK(!masked.quantized);
}

TEST(safetensors_forged_headers)
{
    refused("{\"a\": " TENSOR("BF16", "[4294967296, 4294967296]", "[0, 0]") "}",
            "tensor 'a' has a shape with more elements than can be counted");
    refused("{\"a\": " TENSOR("F64", "[4611686018427387904]", "[0, 0]") "}",
            "tensor 'a' has data_offsets that do not match its dtype and shape");
    refused("{\"a\": " TENSOR("BF16", "[4]", "[0, 9]") "}",
            "tensor 'a' has data_offsets that do not match its dtype and shape");
    refused("{\"a\": " TENSOR("F4", "[3]", "[0, 1]") "}",
            "tensor 'a' has data_offsets that do not match its dtype and shape");
    refused("{\"a\": " TENSOR("BF16", "[4]", "[8, 0]") "}",
            "tensor 'a' has data_offsets that end before they begin");
    refused("{\"a\": " TENSOR("BF16", "[4]", "[0, 8, 9]") "}",
            "tensor 'a' has no data_offsets of the form [begin, end]");
    refused("{\"a\": " TENSOR("BF16", "[4]", "[-8, 0]") "}",
            "tensor 'a' has no data_offsets of the form [begin, end]");
    refused("{\"a\": " TENSOR("BF16", "[-4]", "[0, 8]") "}",
            "tensor 'a' has a shape that is not a list of sizes");
    refused("{\"a\": " TENSOR("BF16", "[4.5]", "[0, 9]") "}",
            "tensor 'a' has a shape that is not a list of sizes");
    refused("{\"a\": " TENSOR("BF16", "4", "[0, 8]") "}", "tensor 'a' has no shape");
    refused("{\"a\": " TENSOR("Q4_K", "[4]", "[0, 8]") "}",
            "tensor 'a' has the unknown dtype 'Q4_K'");
    refused("{\"a\": {\"shape\": [4]}}", "tensor 'a' has no dtype");
    refused("{\"a\": 1}", "tensor 'a' is not described by a JSON object");
    refused("[]", "its JSON is not an object");
    refused("{\"a\": ", "this is not valid JSON: unexpected token near end of file");
    refused("{\"a\": " TENSOR("U8", "[9223372036854775807]", "[0, 9223372036854775807]") "}",
            "tensor 'a' has data_offsets that do not match its dtype and shape");
    // Each is just within 2^64 bits; the fifth takes the sum of elements past 2^64.
#define LARGE TENSOR("F4", "[4611686018427387900]", "[0, 2305843009213693950]")
    refused("{\"a\": " LARGE ", \"b\": " LARGE ", \"c\": " LARGE ", \"d\": " LARGE ", \"e\": " LARGE
            "}",
            "tensor 'e' makes the total larger than can be counted");
}

static void put_bytes_file(struct arena a, struct str path, struct str content)
{
    struct error e = {0};
    CHECK(file_write(a, path, content, FILE_REPLACE, &e));
}

// A file whose length field may lie about its header.
static void put_tensors(struct arena a, struct str path, uint64_t length, struct str rest)
{
    struct buf content = buf_in(&a);
    for (int i = 0; i < 8; i++)
        buf_char(&content, (char)(length >> 8 * i & 0xff));
    buf_put(&content, rest);
    struct arena scratch = a;
    put_bytes_file(scratch, path, buf_str(&content));
}

static const char one_header[] = "{\"a\": " TENSOR("BF16", "[2, 2]", "[0, 8]") "}";

static void put_good(struct arena a, struct str path)
{
    struct str rest = str_join(&a, str_from(one_header), STR("01234567"));
    put_tensors(a, path, sizeof one_header - 1, rest);
}

static void file_refused(struct arena *a, struct str path, const char *message)
{
    struct weights w = {0};
    struct error e = {0};
    CHECK(!safetensors_file_read(&w, *a, path, &e));
    CHECK_U64(e.code, ERROR_BAD_INPUT);
    CHECK_STR(str_from(e.message), message);
    CHECK(str_starts(str_from(e.where), path));
    CHECK_U64(w.files, 0);
}

TEST(safetensors_files)
{
    struct arena *a = test_arena();
    struct str path = path_join(a, temp_folder(a), STR("x.safetensors"));
    struct weights w = {0};
    struct error e = {0};
    put_good(*a, path);
    CHECK(safetensors_file_read(&w, *a, path, &e));
    CHECK_U64(w.parameters, 4);
    CHECK_U64(w.files, 1);
    put_tensors(*a, path, (uint64_t)1 << 60, str_from(one_header));
    file_refused(a, path,
                 "the header claims to be 1152921504606846976 bytes long, but the format allows "
                 "100000000");
    put_tensors(*a, path, 1000, STR("{}"));
    file_refused(a, path, "the header claims to be 1000 bytes long, but the file has only 10");
    put_tensors(*a, path, sizeof one_header - 1, str_from(one_header));
    file_refused(a, path, "the file is cut short: it has 73 of 81 bytes");
    put_bytes_file(*a, path, STR("1234567"));
    file_refused(a, path, "this is too short to be a safetensors file (7 bytes)");
    put_bytes_file(*a, path, STR(""));
    file_refused(a, path, "this is too short to be a safetensors file (0 bytes)");
    put_bytes_file(*a, path, STR("version https://git-lfs.github.com/spec/v1\noid sha256:1\n"));
    file_refused(a, path, "this is a Git LFS pointer, not the file itself");
    put_tensors(*a, path, 4, STR("nope"));
    file_refused(a, path, "this is not valid JSON: '[' or '{' expected near 'nope'");
}

TEST(safetensors_folder_with_one_file_or_none)
{
    struct arena *a = test_arena();
    struct str folder = temp_folder(a);
    struct weights w = {.parameters = 99};
    struct error e = {0};
    bool found = true;
    CHECK(weights_of_folder(&w, &found, *a, folder, &e));
    CHECK(!found);
    CHECK_U64(w.parameters, 0);
    put_good(*a, path_join(a, folder, STR("model.safetensors")));
    CHECK(weights_of_folder(&w, &found, *a, folder, &e));
    CHECK(found);
    CHECK_U64(w.parameters, 4);
}

TEST(safetensors_folder_with_an_index)
{
    struct arena *a = test_arena();
    struct str folder = temp_folder(a);
    struct str index = path_join(a, folder, STR("model.safetensors.index.json"));
    put_bytes_file(*a, index,
                   STR("{\"weight_map\": {\"a\": \"1.safetensors\", \"b\": \"2.safetensors\","
                       "\"c\": \"1.safetensors\", \"d\": \"gone.safetensors\"}}"));
    put_good(*a, path_join(a, folder, STR("1.safetensors")));
    put_good(*a, path_join(a, folder, STR("2.safetensors")));
    struct weights w = {0};
    struct error e = {0};
    bool found = false;
    CHECK(weights_of_folder(&w, &found, *a, folder, &e));
    CHECK(found);
    CHECK_U64(w.files, 2);
    CHECK_U64(w.parameters, 8);
    CHECK_U64(w.missing_files, 1);
    CHECK_STR(str_from(w.first_missing), "gone.safetensors");
}

static void index_refused(const char *json, const char *message)
{
    struct arena *a = test_arena();
    struct str folder = temp_folder(a);
    put_bytes_file(*a, path_join(a, folder, STR("model.safetensors.index.json")), str_from(json));
    struct weights w = {.parameters = 5};
    struct error e = {0};
    bool found = false;
    CHECK(!weights_of_folder(&w, &found, *a, folder, &e));
    CHECK_STR(str_from(e.message), message);
    CHECK_U64(w.parameters, 5);
}

TEST(safetensors_forged_indexes)
{
    index_refused("{}", "it has no weight_map");
    index_refused("{\"weight_map\": {\"a\": \"../x\"}}",
                  "'../x' is not the name of a file in the same folder");
    index_refused("{\"weight_map\": {\"a\": \"/etc/passwd\"}}",
                  "'/etc/passwd' is not the name of a file in the same folder");
    index_refused("{\"weight_map\": {\"a\": \"..\"}}",
                  "'..' is not the name of a file in the same folder");
    index_refused("{\"weight_map\": {\"a\": 5}}",
                  "'' is not the name of a file in the same folder");
    index_refused("{\"weight_map\": {\"a\": \"\"}}",
                  "'' is not the name of a file in the same folder");
}
