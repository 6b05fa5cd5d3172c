// The table of groups, and the table of one group: a row for each interface, method and side.

import { Keyed, el, mark, write } from "./dom.js";
import { amount, count, cut, sanitized, seriesKey, share, side, time } from "./format.js";

/** The longest label in a row, characters. Its title and the group's own page have all of it. */
const LABEL = 120;

const packets = (series) => series.sent.packets + series.received.packets;
const retransmissions = (series) => series.sent.retransmissions + series.received.retransmissions;
const rtt = (name, more) => ({
    name, title: name, sort: name === "mean" || name === "max" ? null : name,
    value: (row) => row.series.rtt?.[name] ?? null, text: time, ...more,
});
const words = (name, title, value) => ({ name, title, isText: true, value, text: sanitized });

/** Every column: the sort order if it has one, the value, and the value as text. */
const COLUMNS = [
    { name: "group", title: "group", sort: "group", isText: true },
    words("interface", "interface", (row) => row.series.interface ?? "-"),
    words("method", "method", (row) => row.series.method),
    words("side", "side", (row) => side(row.series)),
    { name: "count", title: "samples", sort: "count", value: (row) => row.series.rtt?.count ?? 0, text: count },
    rtt("min"), rtt("mean"), rtt("p50"), rtt("p90"), rtt("p95"), rtt("p99"), rtt("max"),
    { name: "range", title: "p50 to p99" },
    { name: "packets", title: "packets", sort: "packets", value: (row) => packets(row.series), text: count },
    { name: "sent", title: "sent, bytes", value: (row) => row.series.sent.bytes, text: amount },
    { name: "received", title: "received, bytes", value: (row) => row.series.received.bytes, text: amount },
    {
        name: "retx", title: "retx", sort: "retransmissions", text: share,
        value: (row) => (packets(row.series) > 0 ? retransmissions(row.series) / packets(row.series) : null),
    },
    // The score by the first profile: the others are in the title.
    { name: "quality", title: "quality", sort: "quality", value: (row) => Object.values(row.series.quality)[0] ?? null, text: count },
];

/** The columns of the table of all groups, and of the table of one group. */
export const ALL = ["group", "interface", "method", "side", "count", "min", "p50", "p95", "p99", "range", "packets", "retx", "quality"];
export const ONE = [
    "interface", "method", "side", "count", "min", "mean", "p50", "p90", "p95", "p99", "max", "range", "packets", "sent",
    "received", "retx", "quality",
];

/** The first sort order of a column that does not begin with the highest value: the lowest score is the worst. */
const FIRST = { group: "asc", quality: "asc" };

/** Returns the group and the series of each row, in the order of the answer. */
export function rowsOf(groups) {
    const row = (group, series, index) => ({ group, series, isFirst: index === 0, key: `${group.id} ${seriesKey(series)}` });
    return groups.flatMap((group) => group.series.map((series, index) => row(group, series, index)));
}

/** A table of series. */
export class Table {
    #element;
    #columns;
    #heads = [];
    #rows;

    /** Fills an empty table. `onSort(column, order)` is called when the user sorts by a column. */
    constructor(table, names, onSort = null) {
        this.#element = table;
        this.#columns = names.map((name) => COLUMNS.find((column) => column.name === name));
        const head = el("tr");
        for (const column of this.#columns) {
            const cell = el("th", { scope: "col", className: `c-${column.name}${column.isText ? " text" : ""}` });
            if (onSort && column.sort) {
                const button = el("button", { type: "button", textContent: column.title });
                button.addEventListener("click", () => onSort(column.sort, this.#next(cell, column)));
                cell.append(button);
            } else {
                cell.append(column.title);
            }
            head.append(cell);
            this.#heads.push(cell);
        }
        const body = el("tbody");
        table.append(el("thead", {}, head), body);
        this.#rows = new Keyed(body, () => this.#row());
        body.addEventListener("keydown", (event) => move(event));
    }

    #next(cell, { sort }) {
        const present = cell.getAttribute("aria-sort");
        if (!present) return FIRST[sort] ?? "desc";
        return present === "ascending" ? "desc" : "asc";
    }

    #row() {
        const element = el("tr");
        const cells = this.#columns.map((column) => {
            if (column.name === "group") {
                const label = el("bdi");
                const link = el("a", {}, label);
                // The head of the row, for screen readers.
                const cell = el("th", { scope: "row", className: "c-group text" }, link);
                element.append(cell);
                return { cell, link, label };
            }
            const cell = el("td", { className: `c-${column.name}${column.isText ? " text" : ""}` });
            element.append(cell);
            if (column.name !== "range") return { cell };
            const bar = el("span", { className: "bar" });
            const dot = el("span", { className: "dot" });
            cell.append(el("span", { className: "range", ariaHidden: "true" }, bar, dot));
            return { bar, dot, cell };
        });
        return { element, cells };
    }

    /** Shows rows, and their sort order. */
    update(rows, { sort = null, order = null } = {}) {
        this.#heads.forEach((cell, index) => {
            const isSorted = sort !== null && this.#columns[index].sort === sort;
            // This column is shown on a narrow screen too.
            cell.classList.toggle("sorted", isSorted);
            mark(cell, "aria-sort", isSorted ? { asc: "ascending", desc: "descending" }[order] : null);
        });
        this.#element.classList.toggle("several", new Set(rows.map((row) => row.series.interface)).size > 1);
        const scale = scaleOf(rows);
        this.#rows.update(rows.map((row) => row.key)).forEach(({ cells }, index) => {
            this.#columns.forEach((column, at) => {
                cells[at].cell.classList.toggle("sorted", sort !== null && column.sort === sort);
                this.#show(column, cells[at], rows[index], scale);
            });
        });
    }

    #show(column, parts, row, scale) {
        if (column.name === "group") {
            const label = sanitized(row.group.group);
            write(parts.label, cut(label, LABEL));
            const { prefix, prefix_count: number } = row.group;
            const more = number > 1 ? ` and ${count(number - 1)} more` : "";
            mark(parts.link, "title", prefix && prefix !== row.group.group ? `${label}: ${sanitized(prefix)}${more}` : label);
            // A label that several rows repeat stands out once.
            mark(parts.link, "class", row.isFirst ? null : "same");
            mark(parts.link, "href", `#/groups/${row.group.id}`);
        } else if (column.name === "range") {
            const { rtt } = row.series;
            parts.cell.firstChild.hidden = !rtt;
            if (!rtt) return;
            const [from, dot, to] = [rtt.p50, rtt.p95, rtt.p99].map(scale);
            parts.bar.style.left = `${from}%`;
            parts.bar.style.width = `${Math.max(to - from, 1)}%`;
            parts.dot.style.left = `${dot}%`;
        } else {
            const value = column.value(row);
            write(parts.cell, value === null ? "-" : column.text(value));
            mark(parts.cell, "data-value", value);
            if (column.name === "quality") mark(parts.cell, "title", scores(row.series));
        }
    }
}

/** Returns the score by each profile, in words. */
function scores({ quality }) {
    return Object.entries(quality).map(([profile, score]) => `${sanitized(profile)} ${score ?? "unknown"}`).join(", ");
}

/** Returns the scale of the range column, from ns to per cent: logarithmic, from the shortest p50 to the longest p99. */
function scaleOf(rows) {
    const rtts = rows.map((row) => row.series.rtt).filter(Boolean);
    const low = Math.log(Math.max(1, Math.min(...rtts.map((it) => it.p50))));
    const high = Math.log(Math.max(2, ...rtts.map((it) => it.p99)));
    return (ns) => (high > low ? (100 * (Math.log(Math.max(1, ns)) - low)) / (high - low) : 0);
}

/** Moves the focus up or down, from the link of a row to that of another. */
function move(event) {
    const steps = { ArrowDown: 1, ArrowUp: -1, j: 1, k: -1 };
    const row = event.target.closest("tr");
    if (!(event.key in steps) || !row || event.ctrlKey || event.metaKey || event.altKey) return;
    const other = steps[event.key] > 0 ? row.nextElementSibling : row.previousElementSibling;
    other?.querySelector("a")?.focus();
    event.preventDefault();
}
