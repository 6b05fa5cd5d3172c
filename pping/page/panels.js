// The last 15 minutes of series: for each series a heatmap, lines of percentiles, and the values at the cursor that all
// share.

import { labels } from "./axis.js";
import { Keyed, el, mark, write } from "./dom.js";
import { clock, count, sanitized, seriesKey, side, tick, time } from "./format.js";
import { draw } from "./heatmap.js";

/** The number of cells that are shown: 15 minutes. */
const CELLS = 90;

/** The width of the axis left of both plots, px. */
const GUTTER = 56;

/** The height of the lines, px. */
const HEIGHT = 150;

/** The width of a time below the lines, px. */
const CLOCK = 32;

/** The percentiles with lines. Each line has its own dashes, so that colour is not the only sign. */
const LINES = [["p50", []], ["p95", [7, 3]], ["p99", [2, 3]]];

const VALUES = ["count", "min", "p50", "p95", "p99", "max"];

/** The highest number of panels. */
const MOST = 8;

const isDark = () => matchMedia("(prefers-color-scheme: dark)").matches;
const style = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

/** All panels. */
export class Panels {
    #panels;
    #note;
    #cursor = null;
    #window = null;

    constructor(parent, note) {
        this.#note = note;
        this.#panels = new Keyed(parent, () => new Panel((number) => this.#point(number)));
        matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.#each((it) => it.repaint()));
    }

    #each(action) {
        this.#panels.items().forEach(action);
    }

    /** Moves all cursors to a cell, or to the latest. */
    #point(number) {
        const { first, last } = this.#window;
        this.#cursor = number === null || number >= last ? null : Math.max(number, first);
        this.#each((panel) => panel.point(this.#cursor));
    }

    /** Shows the series of an answer. */
    update(history) {
        const last = Math.floor(history.time / history.cell);
        this.#window = { first: last - CELLS + 1, last, cell: history.cell / 1e9 };
        if (this.#cursor !== null && this.#cursor < this.#window.first) this.#cursor = null;
        const samples = (series) => series.cells.reduce((sum, cell) => sum + (cell.rtt?.count ?? 0), 0);
        const measured = history.series.filter((series) => samples(series) > 0);
        // If there are too many series, the busiest are shown.
        const chosen = new Set([...measured].sort((one, other) => samples(other) - samples(one)).slice(0, MOST));
        const series = measured.filter((it) => chosen.has(it));
        this.#panels.update(series.map(seriesKey)).forEach((panel, index) => {
            panel.update(series[index], this.#window);
            panel.point(this.#cursor);
        });
        const more = measured.length - series.length;
        write(this.#note, more > 0 ? `${more} more: choose an interface, a side or a method` : "");
        if (series.length === 0) write(this.#note, "No round-trip times in the last 15 minutes");
    }

    /** Removes all panels. */
    clear() {
        this.#panels.update([]);
        write(this.#note, "");
    }
}

/** One series. */
class Panel {
    #onPoint;
    #window = { first: 0, last: CELLS - 1, cell: 10 };
    #cells = [];
    #byNumber = new Map();
    #cursor = null;
    #lines = null;
    #title = el("h3");
    #canvas = el("canvas", { ariaHidden: "true" });
    #mark = el("span", { className: "mark", ariaHidden: "true" });
    #heat;
    #plot = el("div", { className: "lines", ariaHidden: "true" });
    #at = el("b", { className: "at" });
    #values = Object.fromEntries(VALUES.map((name) => [name, el("b")]));
    #most = el("span");
    #table = el("tbody");
    #details;
    #observer = new ResizeObserver(() => this.repaint());

    constructor(onPoint) {
        this.#onPoint = onPoint;
        // This is a slider over time: its value is read aloud when the cursor moves.
        const slider = { role: "slider", tabIndex: 0, ariaValueMin: "0", ariaValueMax: String(CELLS - 1) };
        this.#heat = el("div", { className: "heat", ...slider }, this.#canvas, this.#mark);
        const value = (className, textContent, figure) =>
            el("div", { className }, el("dt", { textContent }), el("dd", {}, figure));
        const readout = el("dl", { className: "readout" }, value("when", "at", this.#at));
        for (const name of VALUES) {
            readout.append(value(`v-${name}`, name === "count" ? "samples" : name, this.#values[name]));
        }
        const legend = el("p", { className: "legend" }, "1", el("span", { className: "ramp", ariaHidden: "true" }), this.#most);
        this.#details = el("details", {}, el("summary", { textContent: "as a table" }), this.#asTable());
        this.#details.addEventListener("toggle", () => this.#fill());
        this.element = el(
            "section", { className: "panel" },
            el("header", {}, this.#title, legend),
            this.#heat, this.#plot, readout, this.#details,
        );
        this.#heat.addEventListener("pointermove", (event) => this.#onPoint(this.#under(event)));
        this.#heat.addEventListener("pointerdown", (event) => this.#onPoint(this.#under(event)));
        this.element.addEventListener("pointerleave", () => this.#onPoint(null));
        this.#heat.addEventListener("keydown", (event) => this.#key(event));
        this.#observer.observe(this.element);
    }

    #asTable() {
        const titles = ["time", "samples", ...VALUES.slice(1)];
        const head = el("tr", {}, ...titles.map((textContent) => el("th", { scope: "col", textContent })));
        const scroll = el("div", { className: "scroll", tabIndex: 0, role: "group", ariaLabel: "cells of ten seconds, the latest first" });
        scroll.append(el("table", {}, el("thead", {}, head), this.#table));
        return scroll;
    }

    destroy() {
        this.#observer.disconnect();
        this.#lines?.destroy();
    }

    /** Returns the cell under a pointer. */
    #under(event) {
        const { left, width } = this.#canvas.getBoundingClientRect();
        const part = (event.clientX - left - GUTTER) / (width - GUTTER);
        return this.#window.first + Math.min(CELLS - 1, Math.max(0, Math.floor(part * CELLS)));
    }

    #key(event) {
        const { first, last } = this.#window;
        const now = this.#cursor ?? this.#cells.at(-1)?.number ?? last;
        const to = {
            ArrowLeft: now - 1, ArrowDown: now - 1, ArrowRight: now + 1, ArrowUp: now + 1,
            PageUp: now + 6, PageDown: now - 6, Home: first, End: last, Escape: last,
        }[event.key];
        if (to === undefined) return;
        event.preventDefault();
        event.stopPropagation();
        this.#onPoint(to);
    }

    /** Shows the cells of a series. */
    update(series, window) {
        this.#window = window;
        this.#cells = series.cells.map((cell) => ({ ...cell, number: Math.round(cell.time / (1e9 * window.cell)) }));
        this.#byNumber = new Map(this.#cells.map((cell) => [cell.number, cell]));
        const name = `${sanitized(series.interface ?? "-")} ${side(series)}`;
        if (this.#title.childElementCount === 0) {
            const method = el("span", { className: "method", textContent: sanitized(series.method) });
            const at = el("bdi", { textContent: sanitized(series.interface ?? "-") });
            this.#title.append(at, ` ${side(series)} `, method);
            mark(this.#heat, "aria-label", `${name}, ${sanitized(series.method)}: round-trip times of the last 15 minutes`);
        }
        this.repaint();
        this.#fill();
    }

    /** Draws everything again, after a change of values, size or colours. */
    repaint() {
        if (this.#cells.length === 0 || !this.element.isConnected) return;
        const { first, last } = this.#window;
        const most = draw(this.#canvas, this.#cells, {
            first, last, gutter: GUTTER, isDark: isDark(), ink: style("--muted"), rule: style("--rule"),
        });
        write(this.#most, `${count(most)} ${most === 1 ? "sample" : "samples"}`);
        this.#drawLines();
        this.point(this.#cursor);
    }

    #drawLines() {
        if (!globalThis.uPlot) {
            this.#plot.hidden = true;
            return;
        }
        const width = this.#plot.clientWidth;
        if (width <= GUTTER) return;
        const { first, last, cell } = this.#window;
        const numbers = Array.from({ length: CELLS }, (_, index) => first + index);
        const data = [
            // The middle of a cell, as in the heatmap.
            numbers.map((number) => (number + 0.5) * cell),
            ...LINES.map(([name]) => numbers.map((number) => this.#byNumber.get(number)?.rtt?.[name] ?? null)),
        ];
        const look = `${width} ${isDark()}`;
        if (this.#lines?.look !== look) {
            this.#lines?.destroy();
            const drawn = options(width, () => this.#window, (number) => this.#onPoint(number));
            this.#lines = new globalThis.uPlot(drawn, data, this.#plot);
            this.#lines.look = look;
        } else {
            this.#lines.setData(data);
        }
    }

    /** Moves the cursor to a cell, or to the latest with values. */
    point(number) {
        this.#cursor = number;
        const { first, last, cell } = this.#window;
        const at = number ?? this.#cells.at(-1)?.number ?? last;
        const rtt = this.#byNumber.get(at)?.rtt;
        write(this.#at, clock(at * cell));
        mark(this.#at, "data-value", at);
        for (const name of VALUES) {
            const value = rtt?.[name] ?? (name === "count" ? 0 : null);
            write(this.#values[name], value === null ? "-" : name === "count" ? count(value) : time(value));
            mark(this.#values[name], "data-value", value);
        }
        const spoken = VALUES.slice(1).map((name) => `${name} ${rtt ? time(rtt[name]) : "none"}`).join(", ");
        mark(this.#heat, "aria-valuenow", Math.min(CELLS - 1, Math.max(0, at - first)));
        const samples = rtt ? `${count(rtt.count)} samples, ${spoken}` : "no samples";
        mark(this.#heat, "aria-valuetext", `${clock(at * cell)}: ${samples}`);
        this.#mark.hidden = number === null;
        const width = this.#canvas.clientWidth - GUTTER;
        this.#mark.style.left = `${GUTTER + ((at - first + 0.5) * width) / CELLS}px`;
        if (!this.#lines) return;
        const left = number === null ? -10 : this.#lines.valToPos((at + 0.5) * cell, "x");
        this.#lines.setCursor({ left, top: number === null ? -10 : 0 }, false);
    }

    /** Fills the table if it is open, with a row for each cell. */
    #fill() {
        if (!this.#details.open) return;
        const rows = [...this.#cells].reverse().filter((cell) => cell.rtt).map(({ number, rtt }) => {
            const values = [clock(number * this.#window.cell), count(rtt.count), ...VALUES.slice(1).map((name) => time(rtt[name]))];
            return el("tr", {}, ...values.map((value) => el("td", { textContent: value })));
        });
        this.#table.replaceChildren(...rows);
    }
}

/** Returns the options of uPlot: percentiles on a logarithmic scale, under the heatmap and as wide. */
function options(width, window, onPoint) {
    const axis = {
        stroke: style("--muted"), font: "11px system-ui, sans-serif", ticks: { show: false },
        grid: { stroke: style("--rule"), width: 1 },
    };
    // A time at the right edge would be cut off.
    const clockInside = (at) => {
        const { first, last, cell } = window();
        const pixels = ((last + 1) * cell - at) * ((width - GUTTER) / ((last - first + 1) * cell));
        return pixels < CLOCK / 2 ? "" : clock(at).slice(0, 5);
    };
    // A value between two gaps has no line.
    const alone = (plot, series) => {
        const values = plot.data[series];
        const isAlone = (value, index) => value !== null && values[index - 1] == null && values[index + 1] == null;
        return values.flatMap((value, index) => (isAlone(value, index) ? [index] : []));
    };
    return {
        width, height: HEIGHT, padding: [8, 0, 0, 0], legend: { show: false },
        cursor: { y: false, points: { show: false }, drag: { x: false, y: false, setScale: false } },
        scales: {
            x: { range: () => [window().first * window().cell, (window().last + 1) * window().cell] },
            y: { distr: 3, range: (plot, low, high) => globalThis.uPlot.rangeLog(low ?? 1e6, high ?? 1e7, 10, false) },
        },
        axes: [
            { ...axis, size: 22, gap: 3, space: 70, values: (plot, splits) => splits.map(clockInside) },
            {
                ...axis, size: GUTTER, gap: 6, space: 18, grid: { ...axis.grid, filter: labelled },
                values: (plot, splits) => splits.map((value) => (value === null ? "" : tick(value))),
                filter: labelled,
            },
        ],
        series: [
            {},
            ...LINES.map(([name, dash]) => ({
                label: name, stroke: style(`--${name}`), width: 1.5, dash, spanGaps: false,
                points: { show: false, size: 4, filter: alone },
            })),
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

/** Returns the splits of a logarithmic axis that get a label and a line; null in place of the others. */
function labelled(plot, splits) {
    const { min, max } = plot.scales.y;
    const height = plot.bbox.height / (globalThis.devicePixelRatio || 1);
    const found = labels(min, max, height).map(({ ns }) => ns);
    return splits.map((value) => (found.some((ns) => Math.abs(value / ns - 1) < 1e-6) ? value : null));
}
