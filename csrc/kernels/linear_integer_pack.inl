// Included inside the namespace of an instruction set.

// The power of two by which a positive number is divided so that it lies in [1, 2); 1 for zero.
inline float power_below(float x) {
    uint32_t bits;
    std::memcpy(&bits, &x, sizeof bits);
    bits &= 0x7f800000u;
    if (bits == 0 || bits == 0x7f800000u) return 1.0f;
    float power;
    std::memcpy(&power, &bits, sizeof power);
    return power;
}

// Panel `panel` of the chunk.
inline void pack_panel(const IntegerPack& a, int64_t panel) {
    const IntegerShape shape(a.form, a.inputs);
    const int64_t first = panel * panel_width, channels = a.channels - first < panel_width ? a.channels - first : panel_width;
    uint8_t* out = static_cast<uint8_t*>(a.panels) + (a.first / panel_width + panel) * shape.panel_bytes;
    float* multipliers = a.multipliers + a.first + first;
    for (int64_t c = 0; c < panel_width; ++c) {
        if (a.form.plain) {
            multipliers[c] = c < channels ? a.scales[first + c] : 0.0f;
            continue;
        }
        float largest = 0.0f;
        for (int64_t g = 0; c < channels && g < shape.groups; ++g) {
            const int64_t place = (first + c) * shape.groups + g;
            largest = std::fmax(largest, std::fabs(a.scales[place]));
            // Far above its scale a floor must not become infinite.
            if (a.form.floors) largest = std::fmax(largest, std::fabs(a.floors[place]) / 4096.0f);
        }
        multipliers[c] = power_below(largest);
    }
    for (int64_t g = 0; g < shape.groups; ++g) {
        const auto write_row = [&](const float* numbers) {
            float row[panel_width];
            for (int64_t c = 0; c < panel_width; ++c)
                row[c] = c < channels ? numbers[(first + c) * shape.groups + g] / multipliers[c] : 0.0f;
            for (int64_t c = 0; c < panel_width; c += F32::width) store_halves(reinterpret_cast<uint16_t*>(out) + c, load(row + c));
            out += 64;
        };
        if (!a.form.plain) write_row(a.scales);
        if (a.form.floors) write_row(a.floors);
        const auto code = [&](int64_t c, int64_t k) -> uint8_t {
            return c < channels && k < a.inputs ? a.codes[(first + c) * a.inputs + k] ^ a.flip : 0;
        };
        for (int64_t k = g * a.form.group; k < (g + 1) * a.form.group; k += 4)
            if (a.form.bits == 8) {
                for (int64_t c = 0; c < panel_width; ++c)
                    for (int64_t i = 0; i < 4; ++i) *out++ = code(c, k + i);
            } else {
                for (int64_t c = 0; c < panel_width / 2; ++c)
                    for (int64_t i = 0; i < 4; ++i) *out++ = code(c, k + i) | code(c + panel_width / 2, k + i) << 4;
            }
    }
}

inline void integer_pack(const IntegerPack& a, Team& team) {
    const auto [begin, end] = team.share((a.channels + panel_width - 1) / panel_width);
    for (int64_t panel = begin; panel < end; ++panel) pack_panel(a, panel);
}
