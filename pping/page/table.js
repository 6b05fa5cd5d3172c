// The table of groups, and the table of one group.

import { BELOW, columns } from "./columns.js";
import { Keyed, el, mark, write } from "./dom.js";
import { count, cut, sanitized } from "./format.js";
import { Sparkline } from "./sparkline.js";

/** The longest label in a row, characters. Its title and the group's own page have all of it. */
const LABEL = 120;

/** The first sort order of a column that does not begin with the highest value: the lowest score is the worst. */
const FIRST = { group: "asc", quality: "asc" };

/** A table of series. */
export class Table {
    #element;
    #names = null;
    #columns = [];
    #heads = [];
    #head = el("tr");
    #rows;
    #onSort;
    #onFold;

    /**
     * Fills an empty table. `onSort(column, order)` is called when the user sorts by a column, and `onFold(group)` when the
     * rows below a group are to be shown or hidden.
     */
    constructor(table, names, { onSort = null, onFold = null } = {}) {
        this.#element = table;
        this.#onSort = onSort;
        this.#onFold = onFold;
        const body = el("tbody");
        table.append(el("thead", {}, this.#head), body);
        this.#rows = new Keyed(body, (key) => (key.endsWith(" below") ? this.#below() : this.#row()));
        body.addEventListener("keydown", (event) => move(event));
        this.arrange(names);
    }

    /** Changes the columns. */
    arrange(names) {
        if (names === this.#names) return;
        this.#names = names;
        this.#columns = columns(names);
        this.#rows.update([]);
        this.#heads = [];
        this.#head.replaceChildren();
        for (const column of this.#columns) {
            const cell = el("th", { scope: "col", className: `c-${column.name}${column.isText ? " text" : ""}` });
            if (this.#onSort && column.sort) {
                const button = el("button", { type: "button", textContent: column.title });
                button.addEventListener("click", () => this.#onSort(column.sort, this.#next(cell, column)));
                cell.append(button);
            } else {
                cell.append(column.title);
            }
            this.#head.append(cell);
            this.#heads.push(cell);
        }
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
                const fold = el("button", { type: "button", className: "fold" });
                fold.addEventListener("click", () => this.#onFold?.(element.dataset.group));
                // The head of the row, for screen readers.
                const cell = el("th", { scope: "row", className: "c-group text" }, el("span", { className: "name" }, fold, link));
                element.append(cell);
                return { cell, link, label, fold };
            }
            const cell = el("td", { className: `c-${column.name}${column.isText ? " text" : ""}` });
            element.append(cell);
            if (column.name === "past") {
                const link = el("a", { textContent: "15 min" });
                cell.append(link);
                return { cell, link };
            }
            if (column.side) {
                const sparkline = new Sparkline();
                cell.append(sparkline.element);
                return { cell, sparkline };
            }
            if (column.name !== "range") return { cell };
            const bar = el("span", { className: "bar" });
            const dot = el("span", { className: "dot" });
            cell.append(el("span", { className: "range", ariaHidden: "true" }, bar, dot));
            return { bar, dot, cell };
        });
        return { element, cells };
    }

    /** Makes a row with a table of series. */
    #below() {
        const table = el("table", { className: "table" });
        const cell = el("td", { colSpan: this.#columns.length }, table);
        return { element: el("tr", { className: "below" }, cell), table: new Table(table, BELOW) };
    }

    /**
     * Shows rows, and their sort order. `link(group)` gives the address that the name of a group leads to, and `pageOf(group)`
     * that of its own page.
     */
    update(rows, { sort = null, order = null, link = null, pageOf = null } = {}) {
        this.#heads.forEach((cell, index) => {
            const isSorted = sort !== null && this.#columns[index].sort === sort;
            // This column is shown on a narrow screen too.
            cell.classList.toggle("sorted", isSorted);
            mark(cell, "aria-sort", isSorted ? { asc: "ascending", desc: "descending" }[order] : null);
        });
        const interfaces = rows.filter((row) => row.series).map((row) => row.series.interface);
        this.#element.classList.toggle("several", new Set(interfaces).size > 1);
        const scale = scaleOf(rows);
        this.#rows.update(rows.map((row) => row.key)).forEach(({ element, cells, table }, index) => {
            mark(element, "data-group", rows[index].group.id);
            if (table) {
                table.update(rows[index].rows);
                return;
            }
            this.#columns.forEach((column, at) => {
                cells[at].cell.classList.toggle("sorted", sort !== null && column.sort === sort);
                this.#show(column, cells[at], rows[index], scale, { link, pageOf });
            });
        });
    }

    #show(column, parts, row, scale, { link, pageOf }) {
        if (column.name === "group") {
            // All nodes of a table are of the same level.
            const { level, labels, path } = row.group;
            const label = sanitized((level && labels[level]) ?? row.group.group);
            write(parts.label, cut(label, LABEL));
            const { prefix, prefix_count: number } = row.group;
            const more = number > 1 ? ` and ${count(number - 1)} more` : "";
            const title = prefix && prefix !== row.group.group ? `${label}: ${sanitized(prefix)}${more}` : label;
            mark(parts.link, "title", path ? sanitized(path) : title);
            // A label that several rows repeat stands out once.
            mark(parts.link, "class", row.isBelow ? "same" : null);
            mark(parts.link, "href", link(row.group));
            mark(parts.fold, "data-below", row.below);
            parts.fold.disabled = row.below === 0;
            mark(parts.fold, "aria-expanded", row.below > 0 ? String(Boolean(row.isUnfolded)) : null);
            const rows = row.below === 1 ? "1 row" : `${count(row.below)} rows`;
            mark(parts.fold, "aria-label", `${rows} below ${cut(label, LABEL)}`);
        } else if (column.name === "past") {
            parts.link.hidden = Boolean(row.isBelow);
            mark(parts.link, "href", pageOf(row.group));
            mark(parts.link, "aria-label", `15 min of ${cut(sanitized(row.group.group), LABEL)}`);
        } else if (column.name === "range") {
            const { rtt } = row.series;
            parts.cell.firstChild.hidden = !rtt;
            if (!rtt) return;
            const [from, dot, to] = [rtt.p50, rtt.p95, rtt.p99].map(scale);
            parts.bar.style.left = `${from}%`;
            parts.bar.style.width = `${Math.max(to - from, 1)}%`;
            parts.dot.style.left = `${dot}%`;
        } else if (column.side) {
            parts.sparkline.update(row.sides[column.side]?.trend ?? [], column.title);
        } else {
            const value = column.value(row);
            write(parts.cell, value === null ? "-" : column.text(value));
            mark(parts.cell, "data-value", value);
            if (column.hint) mark(parts.cell, "title", column.hint(row));
        }
    }
}

/** Returns the scale of the range column, from ns to per cent: logarithmic, from the shortest p50 to the longest p99. */
function scaleOf(rows) {
    const rtts = rows.map((row) => row.series?.rtt).filter(Boolean);
    const low = Math.log(Math.max(1, Math.min(...rtts.map((it) => it.p50))));
    const high = Math.log(Math.max(2, ...rtts.map((it) => it.p99)));
    return (ns) => (high > low ? (100 * (Math.log(Math.max(1, ns)) - low)) / (high - low) : 0);
}

/** Moves the focus up or down, from the link of a row to that of another; right and left unfold and fold its group. */
function move(event) {
    const steps = { ArrowDown: 1, ArrowUp: -1, j: 1, k: -1 };
    const row = event.target.closest("tr");
    if (!row || event.ctrlKey || event.metaKey || event.altKey) return;
    const fold = row.querySelector(`.fold[aria-expanded="${{ ArrowRight: "false", ArrowLeft: "true" }[event.key]}"]`);
    if (fold) {
        fold.click();
        event.preventDefault();
    }
    if (!(event.key in steps)) return;
    const next = (from) => (steps[event.key] > 0 ? from.nextElementSibling : from.previousElementSibling);
    let other = next(row);
    // A row of series below a group has no link.
    while (other && !other.querySelector("a")) other = next(other);
    other?.querySelector("a").focus();
    event.preventDefault();
}
