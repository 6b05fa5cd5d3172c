// Round-trip times over time, as colours: a column for each cell, a row for each bin, or for several so that all fit.

import { labels } from "./axis.js";
import { tick } from "./format.js";

/** The bins of an octave, as in the agent: their bounds are 2^(k/8) s. */
const BINS = 8;

/** All times beyond 64 s share one bin. */
const LAST = 6 * BINS + 1;

/** The least height of a row, px. */
const ROW = 4;

/** The fewest octaves that are shown, so that a steady time is not spread over the whole height. */
const OCTAVES = 3;

/** Viridis, from few to many: readable with any colour vision, and in grey. */
const VIRIDIS = [
    [68, 1, 84], [72, 40, 120], [62, 74, 137], [49, 104, 142], [38, 130, 142],
    [31, 158, 137], [53, 183, 121], [109, 205, 89], [180, 222, 44], [253, 231, 37],
];

/** Returns the bin with this highest time, ns. */
const bin = (bound) => Math.min(LAST, Math.round(BINS * Math.log2(bound / 1e9)));

/** Returns the highest time of a bin, ns. */
const bound = (bin) => 1e9 * 2 ** (bin / BINS);

/** Returns a colour for a part of one. A small part is near the background, whether that is dark or light. */
export function colour(part, isDark) {
    const at = (isDark ? part : 1 - part) * (VIRIDIS.length - 1);
    const [low, high] = [VIRIDIS[Math.floor(at)], VIRIDIS[Math.ceil(at)]];
    const mixed = low.map((value, index) => Math.round(value + (high[index] - value) * (at - Math.floor(at))));
    return `rgb(${mixed.join(" ")})`;
}

/** Counts samples in rows, as many as fit `height` px, from the bin `first`, with `step` bins each. */
export function rows(cells, height) {
    let [low, high] = [Infinity, -Infinity];
    for (const { histogram } of cells) {
        if (histogram.length === 0) continue;
        low = Math.min(low, bin(histogram[0][0]));
        high = Math.max(high, bin(histogram.at(-1)[0]));
    }
    if (low > high) return null;
    const missing = Math.max(0, OCTAVES * BINS - (high - low + 1));
    low -= Math.floor(missing / 2);
    high += Math.ceil(missing / 2);
    let step = 1;
    while ((high - low + 1) / step > height / ROW) step *= 2;
    // Rows of several bins end where those of an octave do.
    const first = Math.floor((low - 1) / step) * step + 1;
    const rows = Math.ceil((high - first + 1) / step);
    let most = 0;
    const columns = cells.map(({ number, histogram }) => {
        const counts = new Map();
        for (const [highest, count] of histogram) {
            const row = Math.floor((bin(highest) - first) / step);
            counts.set(row, (counts.get(row) ?? 0) + count);
        }
        most = Math.max(most, ...counts.values());
        return { number, counts };
    });
    return { first, step, rows, columns, most };
}

/** Draws cells into a canvas, from the cell with the number `first` to that of `last`, right of a gutter for the axis. */
export function draw(canvas, cells, { first, last, gutter, isDark, ink, rule }) {
    const [width, height] = [canvas.clientWidth, canvas.clientHeight];
    const ratio = globalThis.devicePixelRatio || 1;
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(height * ratio);
    const context = canvas.getContext("2d");
    context.scale(ratio, ratio);
    const found = rows(cells, height);
    if (!found || width <= gutter) return 0;
    const { rows: count, columns, most, step } = found;
    const row = height / count;
    const column = (width - gutter) / (last - first + 1);
    // Whole pixels of the screen, or there are seams between columns.
    const snap = (value) => Math.round(value * ratio) / ratio;
    context.fillStyle = rule;
    const [low, high] = [bound(found.first - 1), bound(found.first - 1 + count * step)];
    const marks = labels(low, high, height).map(({ ns, at }) => ({ ns, y: height * (1 - at) }));
    for (const { y } of marks) context.fillRect(gutter, snap(y), width - gutter, 1 / ratio);
    for (const { number, counts } of columns) {
        if (number < first || number > last) continue;
        const left = snap(gutter + (number - first) * column);
        const right = snap(gutter + (number - first + 1) * column);
        for (const [index, samples] of counts) {
            const top = snap(height - (index + 1) * row);
            context.fillStyle = colour(Math.log1p(samples) / Math.log1p(most), isDark);
            context.fillRect(left, top, right - left, snap(height - index * row) - top);
        }
    }
    context.fillStyle = ink;
    context.font = "11px system-ui, sans-serif";
    context.textAlign = "right";
    context.textBaseline = "middle";
    for (const { ns, y } of marks) context.fillText(tick(ns), gutter - 6, y);
    return most;
}
