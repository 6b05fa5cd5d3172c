// The lines of percentiles of a series, under its heatmap and as wide.

import { labels } from "./axis.js";
import { COMPARED } from "./before.js";
import { clock, day, tick } from "./format.js";

/** The height of the lines, px. */
const HEIGHT = 150;

/** The width of a time below the lines, px. */
const CLOCK = 40;

/** The percentiles with lines. Each line has its own dashes, so that colour is not the only sign. */
const LINES = [["p50", []], ["p95", [7, 3]], ["p99", [2, 3]]];

/** A day, s: at longer distances, the axis has days. */
const DAY = 86_400;

/** Returns the value of a property of the style. */
export const style = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

/**
 * Returns what is drawn: the middles of the cells, as in the heatmap, and the values of each line, null for a gap. The lines of
 * the week before come first, and so are behind the others.
 */
export function data({ first, last, cell }, cells, before) {
    const numbers = Array.from({ length: last - first + 1 }, (_, index) => first + index);
    const earlier = before ? COMPARED.map(([name]) => numbers.map((number) => before.at((number + 0.5) * cell)?.[name] ?? null)) : [];
    const present = LINES.map(([name]) => numbers.map((number) => cells.get(number)?.rtt?.[name] ?? null));
    return [numbers.map((number) => (number + 0.5) * cell), ...earlier, ...present];
}

/** Returns the options of uPlot: percentiles on a logarithmic scale, beside an axis that is `gutter` px wide. */
export function options({ width, gutter, isCompared }, window, onPoint) {
    const axis = {
        stroke: style("--muted"), font: "11px system-ui, sans-serif", ticks: { show: false },
        grid: { stroke: style("--rule"), width: 1 },
    };
    // A time at the right edge would be cut off.
    const clockInside = (at, step) => {
        const { first, last, cell } = window();
        const pixels = ((last + 1) * cell - at) * ((width - gutter) / ((last - first + 1) * cell));
        if (pixels < CLOCK / 2) return "";
        const text = clock(at).slice(0, 5);
        return step >= DAY || (isLong(window()) && text === "00:00") ? day(at) : text;
    };
    // A value between two gaps has no line.
    const alone = (plot, series) => {
        const values = plot.data[series];
        const isAlone = (value, index) => value !== null && values[index - 1] == null && values[index + 1] == null;
        return values.flatMap((value, index) => (isAlone(value, index) ? [index] : []));
    };
    const line = (label, name, look) => ({
        label, stroke: style(`--${name}`), spanGaps: false, points: { show: false, size: 4, filter: alone }, ...look,
    });
    return {
        width, height: HEIGHT, padding: [8, 0, 0, 0], legend: { show: false },
        cursor: { y: false, points: { show: false }, drag: { x: false, y: false, setScale: false } },
        scales: {
            x: { range: () => [window().first * window().cell, (window().last + 1) * window().cell] },
            y: { distr: 3, range: (plot, low, high) => globalThis.uPlot.rangeLog(low ?? 1e6, high ?? 1e7, 10, false) },
        },
        axes: [
            { ...axis, size: 22, gap: 3, space: 70, values: (plot, splits, axis, space, step) => splits.map((at) => clockInside(at, step)) },
            {
                ...axis, size: gutter, gap: 6, space: 18, grid: { ...axis.grid, filter: labelled },
                values: (plot, splits) => splits.map((value) => (value === null ? "" : tick(value))),
                filter: labelled,
            },
        ],
        series: [
            {},
            ...(isCompared ? COMPARED : []).map(([name, dash]) => line(`${name}, a week before`, name, { width: 1, dash })),
            ...LINES.map(([name, dash]) => line(name, name, { width: 1.5, dash })),
        ],
        hooks: {
            ready: [(plot) => {
                plot.over.addEventListener("pointermove", (event) => {
                    const { left } = plot.over.getBoundingClientRect();
                    onPoint(Math.floor(plot.posToVal(event.clientX - left, "x") / window().cell));
                });
            }],
        },
    };
}

/** Whether a time of day alone may be that of several days. */
const isLong = ({ first, last, cell }) => (last - first + 1) * cell >= DAY;

/** Returns the splits of a logarithmic axis that get a label and a line; null in place of the others. */
function labelled(plot, splits) {
    const { min, max } = plot.scales.y;
    const height = plot.bbox.height / (globalThis.devicePixelRatio || 1);
    const found = labels(min, max, height).map(({ ns }) => ns);
    return splits.map((value) => (found.some((ns) => Math.abs(value / ns - 1) < 1e-6) ? value : null));
}
