// The week before, beside a series.

import { time } from "./format.js";
import { WEEK } from "./range.js";

/** The percentiles that are compared. Their dashes differ from those of all other lines. */
export const COMPARED = [["p50", [1, 4]], ["p95", [10, 3, 1, 3]]];

/** The cells of a series a week before. Where only longer ones were kept, several present cells have the same one. */
export class Before {
    #cells;
    #length;
    /** The distribution of the whole range, or null. */
    rtt;

    /** `length` is that of a cell, ns. The series is undefined if there was none. */
    constructor(series, length) {
        this.#length = length / 1e9;
        this.#cells = new Map((series?.cells ?? []).map((cell) => [Math.floor(cell.time / length), cell]));
        this.rtt = series?.rtt ?? null;
    }

    /** Returns the distribution a week before a moment, s; null without samples. */
    at(seconds) {
        return this.#cells.get(Math.floor((seconds - WEEK) / this.#length))?.rtt ?? null;
    }
}

/** Describes a percentile of a range, compared with that of the week before. */
function change(name, now, before) {
    const percent = (100 * Math.abs(now - before)) / before;
    const words = now === before ? "the same" : `${percent.toFixed(percent < 10 ? 1 : 0)} % ${now > before ? "higher" : "lower"}`;
    return `${name} ${time(now)}, a week before ${time(before)}: ${words}.`;
}

/** Describes how the percentiles of a range have changed. */
export function changes(now, before) {
    if (!before) return "No round-trip times in the week before.";
    return `All of the range: ${COMPARED.map(([name]) => change(name, now[name], before[name])).join(" ")}`;
}
