// Included inside the namespace of an instruction set: how four codes of a channel meet four codes of a row of x. Those of the weight are
// unsigned, those of x signed.

// What a step of a panel holds: channels 0 ... 15 and, beside them, 16 ... 31.
template <int bits>
struct CodeStep;

template <>
struct CodeStep<4> {
    static constexpr int64_t bytes = 64;  // channel c in the low halves of bytes 4 c to 4 c + 3, channel c + 16 in the high ones
    static I32 first(const uint8_t* p, int64_t c) { return both(p, c) & I32::all(0x0f0f0f0f); }
    static I32 second(const uint8_t* p, int64_t c) { return shorts_right<4>(both(p, c)) & I32::all(0x0f0f0f0f); }
    static I32 both(const uint8_t* p, int64_t c) { return load(reinterpret_cast<const int32_t*>(p) + c); }
};

template <>
struct CodeStep<8> {
    static constexpr int64_t bytes = 128;  // channel after channel
    static I32 first(const uint8_t* p, int64_t c) { return load(reinterpret_cast<const int32_t*>(p) + c); }
    static I32 second(const uint8_t* p, int64_t c) { return load(reinterpret_cast<const int32_t*>(p) + panel_width / 2 + c); }
};

// sum + the four products of every channel.
template <int bits>
struct ByteProducts;

#if defined(__AVX512VNNI__)

struct WholeBytes {
    struct Code {
        I32 v;
        explicit Code(I32 codes) : v(codes) {}
    };
    struct Row {
        I32 v;
        explicit Row(const int32_t* x) : v(I32::all(*x)) {}
    };
    static I32 add(I32 sum, Code w, Row x) { return {_mm512_dpbusd_epi32(sum.v, w.v.v, x.v.v)}; }
};
template <>
struct ByteProducts<4> : WholeBytes {};
template <>
struct ByteProducts<8> : WholeBytes {};

#else

template <>
struct ByteProducts<4> {
    struct Code {
        I32 v;
        explicit Code(I32 codes) : v(codes) {}
    };
    struct Row {
        I32 v;
        explicit Row(const int32_t* x) : v(I32::all(*x)) {}
    };
    // At most 2 * 15 * 127 in an int16.
    static I32 add(I32 sum, Code w, Row x) { return sum + pairs_of_shorts(pairs_of_bytes(w.v, x.v), I32::all(0x00010001)); }
};

// Sums of two products of whole bytes do not fit in an int16: even and odd bytes apart.
template <>
struct ByteProducts<8> {
    struct Code {
        I32 even, odd;
        explicit Code(I32 codes) : even(codes & I32::all(0x00ff00ff)), odd(shorts_right<8>(codes)) {}
    };
    struct Row {
        I32 even, odd;
        explicit Row(const int32_t* x) : even(signed_shorts_right<8>(shorts_left<8>(I32::all(*x)))), odd(signed_shorts_right<8>(I32::all(*x))) {}
    };
    static I32 add(I32 sum, const Code& w, const Row& x) {
        return sum + pairs_of_shorts(w.even, x.even) + pairs_of_shorts(w.odd, x.odd);
    }
};

#endif
