// Attention: of new tokens to the paged context of their sequences, and of the rows of a packed batch to themselves.
#pragma once

#include "paged_layer.h"

namespace headway {

// out[t][h] = sum over visible keys of softmax(scores) * value, in float32. The score of a key is query . key * scale, then
// softcap * tanh(score / softcap), then + bias[h][position of the key]. A token at position p sees p - window + 1 .. p.
// Sequence s has query_lens[s] tokens, which end at position context_lens[s] - 1; they follow those of sequence s - 1.
struct Attend {
    PagedLayer kv;
    void* out;          // dtype, token rows of heads * head_dim numbers
    const void* query;  // dtype, head i of token t at query + t * query_stride + i * head_dim
    const int32_t* query_lens;
    const int32_t* context_lens;
    const int32_t* block_tables;  // rows table_stride apart
    const float* bias;            // rows bias_stride apart, one for each head; nullptr: none
    void* workspace;              // attention_workspace(head_dim, team) bytes, which no call keeps anything in
    int64_t sequences, heads, query_stride, table_stride, bias_stride;
    int64_t window;  // 0: all
    float scale, softcap;  // softcap 0: none
    Dtype dtype;

    template <class Resize>
    void resize(const Resize& to) {
        sequences = to(sequences);
    }
};

// The same for rows of tokens that see each other in both directions, `reach` to either side. Row r is tokens starts[r] to starts[r + 1].
// The bias of query i and key j of a row is bias[h * bias_head_stride + i * bias_row_stride + j].
struct AttendRows {
    void* out;         // dtype, token rows of heads * head_dim numbers
    const void* qkv;   // dtype, token rows qkv_stride apart: heads queries, then as many keys, then as many values
    const int64_t* starts;
    const float* bias;  // nullptr: none
    void* workspace;
    int64_t rows, heads, head_dim, qkv_stride, bias_head_stride, bias_row_stride;
    int64_t reach;  // negative: all
    float scale;
    Dtype dtype;

    template <class Resize>
    void resize(const Resize& to) {
        rows = to(rows);
    }
};

// Bytes of workspace for a team of `members`.
int64_t attention_workspace(int64_t head_dim, int64_t members);

}  // namespace headway
