// Included inside the namespace of an instruction set: which numbers of a row stay, without sorting it.

// Which comes first: the larger number, of equal ones the one with the smaller index.
// Without branches: which of two numbers is larger, nobody can guess.
inline bool precedes(const Candidate& a, const Candidate& b) {
    return (a.value > b.value) | ((a.value == b.value) & (a.index < b.index));
}

inline void swap(Candidate& a, Candidate& b) {
    const Candidate c = a;
    a = b;
    b = c;
}

inline void insertion_sort(Candidate* c, int64_t n) {
    for (int64_t i = 1; i < n; ++i)
        for (int64_t j = i; j > 0 && precedes(c[j], c[j - 1]); --j) swap(c[j], c[j - 1]);
}

// Moves a pivot to its place in the order, what precedes it to the left of it; returns the place.
inline int64_t partition(Candidate* c, int64_t begin, int64_t end) {
    Candidate &first = c[begin], &middle = c[begin + (end - begin) / 2], &last = c[end - 1];
    if (precedes(middle, first)) swap(middle, first);
    if (precedes(last, first)) swap(last, first);
    if (precedes(middle, last)) swap(middle, last);  // the median of the three is last
    const Candidate pivot = last;
    int64_t place = begin;
    for (int64_t i = begin; i < end - 1; ++i) {
        const bool leads = precedes(c[i], pivot);
        swap(c[i], c[place]);
        place += leads;
    }
    swap(c[place], c[end - 1]);
    return place;
}

// The fewest leading candidates, at least one, whose sizes add up to `goal`; all when they never do. They are moved to the front, in any
// order; returns their number. n >= 1.
template <class Size>
inline int64_t fewest(Candidate* c, int64_t n, double goal, Size&& size) {
    int64_t begin = 0, end = n;  // what is before begin stays; what is from end on is only taken when all before is too little
    double sum = 0;
    while (end - begin > 24) {
        const int64_t place = partition(c, begin, end);
        double part = 0;
        for (int64_t i = begin; i < place; ++i) part += size(c[i]);
        if (place > begin && sum + part >= goal) {
            end = place;
            continue;
        }
        sum += part + size(c[place]);
        begin = place + 1;
        if (sum >= goal) return begin;
    }
    insertion_sort(c + begin, end - begin);
    for (int64_t i = begin; i < end; ++i) {
        sum += size(c[i]);
        if (sum >= goal) return i + 1;
    }
    return end;
}

inline void sift(Candidate* c, int64_t at, int64_t n) {
    for (int64_t child; (child = 2 * at + 1) < n; at = child) {
        if (child + 1 < n && precedes(c[child], c[child + 1])) ++child;
        if (!precedes(c[at], c[child])) return;
        swap(c[at], c[child]);
    }
}

inline void sort(Candidate* c, int64_t n) {
    if (n <= 24) return insertion_sort(c, n);
    for (int64_t i = n / 2; i-- > 0;) sift(c, i, n);
    for (int64_t i = n - 1; i > 0; --i) {
        swap(c[0], c[i]);
        sift(c, 0, i);
    }
}

// Calls each(i) for those numbers of a register at x[i ...] that are at least `bound`.
template <class Each>
inline void each_from(F32 v, F32 bound, int64_t i, int64_t left, Each&& each) {
    uint32_t found = bits(at_least(v, bound));
    if (left < F32::width) found &= (1u << left) - 1;
    for (; found; found &= found - 1) each(i + __builtin_ctz(found));
}
