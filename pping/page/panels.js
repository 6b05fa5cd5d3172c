// The last 15 minutes of series, or a range: for each series a heatmap, lines of percentiles, and the values at the cursor
// that all share.

import { Before, COMPARED, changes } from "./before.js";
import { Keyed, el, mark, write } from "./dom.js";
import { clock, count, duration, moment, sanitized, seriesKey, side, time } from "./format.js";
import { draw } from "./heatmap.js";
import { data, options, style } from "./lines.js";

/** The number of cells that are shown unless there is a range: 15 minutes. */
const CELLS = 90;

/** The width of the axis left of both plots, px. */
const GUTTER = 56;

const VALUES = ["count", "min", "p50", "p95", "p99", "max"];

/** The highest number of panels. */
const MOST = 8;

const isDark = () => matchMedia("(prefers-color-scheme: dark)").matches;

/** Returns the cells from the first to the last of an answer, and how they are named: of a range, or of the last 15 minutes. */
function windowOf(history, range) {
    const cell = history.cell / 1e9;
    if (!range) {
        const last = Math.floor(history.time / history.cell);
        return { first: last - CELLS + 1, last, cell, text: clock, name: "the last 15 minutes" };
    }
    const [first, last] = [Math.floor(range.from / cell), Math.ceil(range.to / cell) - 1];
    return { first, last, cell, text: moment, name: "the range" };
}

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

    /** Shows the series of an answer, which is of a range or of the last 15 minutes, and those of the week before if there are any. */
    update(history, range = null, before = null) {
        const { cell } = this.#window ?? {};
        this.#window = windowOf(history, range);
        // The numbers of cells of another length are other moments.
        if (cell !== this.#window.cell) this.#cursor = null;
        const { first, last } = this.#window;
        if (this.#cursor !== null && (this.#cursor < first || this.#cursor > last)) this.#cursor = null;
        const samples = (series) => series.cells.reduce((sum, cell) => sum + (cell.rtt?.count ?? 0), 0);
        const measured = history.series.filter((series) => samples(series) > 0);
        // If there are too many series, the busiest are shown.
        const chosen = new Set([...measured].sort((one, other) => samples(other) - samples(one)).slice(0, MOST));
        const series = measured.filter((it) => chosen.has(it));
        this.#panels.update(series.map(seriesKey)).forEach((panel, index) => {
            const earlier = before?.series.find((it) => seriesKey(it) === seriesKey(series[index]));
            panel.update(series[index], this.#window, before && new Before(earlier, before.cell));
            panel.point(this.#cursor);
        });
        const more = measured.length - series.length;
        write(this.#note, more > 0 ? `${more} more: choose an interface, a side or a method` : "");
        if (series.length === 0) write(this.#note, `No round-trip times in ${this.#window.name}`);
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
    #window = { first: 0, last: CELLS - 1, cell: 10, text: clock, name: "" };
    #before = null;
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
    #change = el("p", { className: "change" });
    #columns = el("tr");
    #scroll = el("div", { className: "scroll", tabIndex: 0, role: "group" });
    #table = el("tbody");
    #details;
    #observer = new ResizeObserver(() => this.repaint());

    constructor(onPoint) {
        this.#onPoint = onPoint;
        // This is a slider over time: its value is read aloud when the cursor moves.
        const slider = { role: "slider", tabIndex: 0, ariaValueMin: "0" };
        this.#heat = el("div", { className: "heat", ...slider }, this.#canvas, this.#mark);
        const value = (className, textContent, figure) =>
            el("div", { className }, el("dt", { textContent }), el("dd", {}, figure));
        const readout = el("dl", { className: "readout" }, value("when", "at", this.#at));
        for (const name of VALUES) {
            readout.append(value(`v-${name}`, name === "count" ? "samples" : name, this.#values[name]));
        }
        const legend = el("p", { className: "legend" }, "1", el("span", { className: "ramp", ariaHidden: "true" }), this.#most);
        this.#scroll.append(el("table", {}, el("thead", {}, this.#columns), this.#table));
        this.#details = el("details", {}, el("summary", { textContent: "as a table" }), this.#scroll);
        this.#details.addEventListener("toggle", () => this.#fill());
        this.element = el(
            "section", { className: "panel" },
            el("header", {}, this.#title, legend),
            this.#heat, this.#plot, readout, this.#change, this.#details,
        );
        this.#heat.addEventListener("pointermove", (event) => this.#onPoint(this.#under(event)));
        this.#heat.addEventListener("pointerdown", (event) => this.#onPoint(this.#under(event)));
        this.element.addEventListener("pointerleave", () => this.#onPoint(null));
        this.#heat.addEventListener("keydown", (event) => this.#key(event));
        this.#observer.observe(this.element);
    }

    destroy() {
        this.#observer.disconnect();
        this.#lines?.destroy();
    }

    /** Returns the cell under a pointer. */
    #under(event) {
        const { left, width } = this.#canvas.getBoundingClientRect();
        const part = (event.clientX - left - GUTTER) / (width - GUTTER);
        const { first, last } = this.#window;
        return Math.min(last, Math.max(first, first + Math.floor(part * (last - first + 1))));
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

    /** Shows the cells of a series, and those of the week before unless that is null. */
    update(series, window, before) {
        this.#window = window;
        this.#before = before;
        this.#cells = series.cells.map((cell) => ({ ...cell, number: Math.round(cell.time / (1e9 * window.cell)) }));
        this.#byNumber = new Map(this.#cells.map((cell) => [cell.number, cell]));
        const name = `${sanitized(series.interface ?? "-")} ${side(series)}`;
        if (this.#title.childElementCount === 0) {
            const method = el("span", { className: "method", textContent: sanitized(series.method) });
            const at = el("bdi", { textContent: sanitized(series.interface ?? "-") });
            this.#title.append(at, ` ${side(series)} `, method);
        }
        mark(this.#heat, "aria-label", `${name}, ${sanitized(series.method)}: round-trip times of ${window.name}`);
        mark(this.#heat, "aria-valuemax", window.last - window.first);
        write(this.#change, before ? changes(series.rtt, before.rtt) : "");
        this.#change.hidden = before === null;
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
        const drawn = data(this.#window, this.#byNumber, this.#before);
        const isCompared = this.#before !== null;
        const look = `${width} ${isDark()} ${isCompared}`;
        if (this.#lines?.look !== look) {
            this.#lines?.destroy();
            const of = options({ width, gutter: GUTTER, isCompared }, () => this.#window, (number) => this.#onPoint(number));
            this.#lines = new globalThis.uPlot(of, drawn, this.#plot);
            this.#lines.look = look;
        } else {
            this.#lines.setData(drawn);
        }
    }

    /** Moves the cursor to a cell, or to the latest with values. */
    point(number) {
        this.#cursor = number;
        const { first, last, cell, text } = this.#window;
        const at = number ?? this.#cells.at(-1)?.number ?? last;
        const rtt = this.#byNumber.get(at)?.rtt;
        write(this.#at, text(at * cell));
        mark(this.#at, "data-value", at);
        for (const name of VALUES) {
            const value = rtt?.[name] ?? (name === "count" ? 0 : null);
            write(this.#values[name], value === null ? "-" : name === "count" ? count(value) : time(value));
            mark(this.#values[name], "data-value", value);
        }
        const spoken = VALUES.slice(1).map((name) => `${name} ${rtt ? time(rtt[name]) : "none"}`).join(", ");
        mark(this.#heat, "aria-valuenow", Math.min(last - first, Math.max(0, at - first)));
        const samples = rtt ? `${count(rtt.count)} samples, ${spoken}` : "no samples";
        const earlier = this.#earlier(at).map((value, index) => `${COMPARED[index][0]} a week before ${value}`);
        mark(this.#heat, "aria-valuetext", `${text(at * cell)}: ${[samples, ...earlier].join(", ")}`);
        this.#mark.hidden = number === null;
        const width = this.#canvas.clientWidth - GUTTER;
        this.#mark.style.left = `${GUTTER + ((at - first + 0.5) * width) / (last - first + 1)}px`;
        if (!this.#lines) return;
        const left = number === null ? -10 : this.#lines.valToPos((at + 0.5) * cell, "x");
        this.#lines.setCursor({ left, top: number === null ? -10 : 0 }, false);
    }

    /** Returns the percentiles of the week before a cell in words, if there is one. */
    #earlier(number) {
        if (!this.#before) return [];
        const rtt = this.#before.at((number + 0.5) * this.#window.cell);
        return COMPARED.map(([name]) => (rtt ? time(rtt[name]) : "-"));
    }

    /** Fills the table if it is open, with a row for each cell. */
    #fill() {
        if (!this.#details.open) return;
        const { cell, text } = this.#window;
        mark(this.#scroll, "aria-label", `cells of ${duration(cell)}, the latest first`);
        const titles = ["time", "samples", ...VALUES.slice(1)];
        const earlier = this.#before ? COMPARED.map(([name]) => `${name} a week before`) : [];
        this.#columns.replaceChildren(...[...titles, ...earlier].map((textContent) => el("th", { scope: "col", textContent })));
        const rows = [...this.#cells].reverse().filter(({ rtt }) => rtt).map(({ number, rtt }) => {
            const values = [text(number * cell), count(rtt.count), ...VALUES.slice(1).map((name) => time(rtt[name]))];
            return el("tr", {}, ...[...values, ...this.#earlier(number)].map((value) => el("td", { textContent: value })));
        });
        this.#table.replaceChildren(...rows);
    }
}
