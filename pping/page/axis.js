// The labels of logarithmic axes of time, as many as fit.

/** The least distance between two labels, px. */
const LABEL = 15;

/** Half the height of a label, px. */
const EDGE = 6;

/**
 * Returns the round times that get a label beside an axis from `low` to `high` ns that is `height` px high, each with its
 * part of the height: 1, 2 and 5 of each power of ten, or 1 and 3, or 1 of every power, or of every second, and so on.
 */
export function labels(low, high, height) {
    const decade = height / Math.log10(high / low);
    const nearest = (digits) => Math.min(...digits.map((digit, index) => Math.log10((digits[index + 1] ?? 10) / digit)));
    const digits = [[1, 2, 5], [1, 3]].find((all) => decade * nearest(all) >= LABEL) ?? [1];
    const step = Math.max(1, Math.ceil(LABEL / decade));
    const found = [];
    for (let power = Math.floor(Math.log10(low)); 10 ** power <= high; power += 1) {
        if (power % step !== 0) continue;
        for (const digit of digits) {
            const ns = digit * 10 ** power;
            const at = Math.log(ns / low) / Math.log(high / low);
            // A label at the edge would be cut off.
            if (at * height >= EDGE && (1 - at) * height >= EDGE) found.push({ ns, at });
        }
    }
    return found;
}
